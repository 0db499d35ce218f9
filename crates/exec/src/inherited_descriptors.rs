//! Descriptors that a process inherited from the program that started it.

/// Closes all descriptors except standard input, output and error. For a process that outlives its starter: somebody may wait for
/// the end of a descriptor that was open without close-on-exec. Call it before this process opens any.
pub fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let inherited: Vec<i32> = numbers.filter(|&number| number > 2).collect();
    for number in inherited {
        // The descriptor of the listing itself is among them, and already closed.
        let _ = nix::unistd::close(number);
    }
}
