//! Compiles rules about system calls to a BPF program.
//!
//! The kernel compiles a new program and runs it for every possible syscall number, to find those that it
//! need not check again. With a linear sequence of comparisons that takes as long as all mounts of a sandbox.
//! So the program does a binary search over the numbers, and the common checks are made once.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompFilter, SeccompRule, sock_filter,
};

/// Rules about each call, by its number. The action applies if one of the rules matches, or if there are
/// none.
pub(super) type SyscallRules = Vec<(i64, Vec<SeccompRule>)>;

/// The largest number of calls that are compared one after the other.
const MAX_LINEAR: usize = 6;

const LOAD_NUMBER: sock_filter = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 }; // BPF_LD | BPF_W | BPF_ABS
const JUMP_IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

/// The bit of x32 syscall numbers, which a 64-bit program can use where the kernel supports them. The rules
/// only know the others.
#[cfg(target_arch = "x86_64")]
const X32_BIT: u32 = 0x4000_0000;

/// Compiles a program that applies the action of each call and allows all others. It kills programs of
/// another architecture: their calls have other numbers.
pub(super) fn compile(all: Vec<(SyscallRules, SeccompAction)>) -> Result<BpfProgram, BackendError> {
    let mut sorted: BTreeMap<i64, (Vec<SeccompRule>, SeccompAction)> = BTreeMap::new();
    for (rules, action) in all {
        sorted.extend(rules.into_iter().map(|(call, rules)| (call, (rules, action.clone()))));
    }
    let mut pieces: Vec<(SyscallRules, SeccompAction)> = Vec::new();
    for (call, (rules, action)) in sorted {
        match pieces.last_mut() {
            Some((piece, same))
                if piece.len() < MAX_LINEAR
                    && *same == action
                    && is_unconditional(piece)
                    && rules.is_empty() =>
            {
                piece.push((call, rules));
            }
            _ => pieces.push((vec![(call, rules)], action)),
        }
    }
    let pieces: Vec<(u32, BpfProgram)> =
        pieces.into_iter().map(compile_group).collect::<Result<_, _>>()?;
    let mut program = architecture_check()?;
    program.extend(prologue());
    program.push(LOAD_NUMBER);
    program.extend(binary_search(&pieces));
    Ok(program)
}

/// Whether the rules check only the number.
fn is_unconditional(rules: &SyscallRules) -> bool {
    rules.iter().all(|(_, rules)| rules.is_empty())
}

/// Replaces every return value `from` by `to`, which the compiler does not know.
pub(super) fn replace_return(program: &mut BpfProgram, from: u32, to: u32) {
    for step in program.iter_mut().filter(|step| step.code == RETURN && step.k == from) {
        step.k = to;
    }
}

/// A program for a few calls, and the first of their numbers.
fn compile_group(
    (rules, action): (SyscallRules, SeccompAction),
) -> Result<(u32, BpfProgram), BackendError> {
    let number = |call: i64| u32::try_from(call).unwrap_or(u32::MAX);
    let first = rules.first().map_or(0, |(call, _)| number(*call));
    if is_unconditional(&rules) {
        return Ok((first, linear_search(&rules, &action)));
    }
    let program = compile_rules(rules, action)?;
    Ok((first, program.get(architecture_check()?.len()..).unwrap_or_default().to_vec()))
}

/// Compares the number with each of these. The last two instructions return the action for no match and for a
/// match.
fn linear_search(rules: &SyscallRules, action: &SeccompAction) -> BpfProgram {
    let answer = |action: SeccompAction| instruction(RETURN, u32::from(action));
    let count = rules.len();
    let compare = rules.iter().enumerate().map(|(at, (call, _))| {
        let over = u8::try_from(count - at).unwrap_or(u8::MAX);
        sock_filter {
            jt: over,
            ..instruction(JUMP_IF_EQUAL, u32::try_from(*call).unwrap_or(u32::MAX))
        }
    });
    let mut program: BpfProgram = compare.collect();
    program.extend([answer(SeccompAction::Allow), answer(action.clone())]);
    program
}

fn instruction(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

/// The start of every program: kills programs of another architecture.
fn architecture_check() -> Result<BpfProgram, BackendError> {
    let mut program = compile_rules(Vec::new(), SeccompAction::Errno(0))?;
    // The action for the right architecture.
    program.pop();
    Ok(program)
}

fn compile_rules(rules: SyscallRules, action: SeccompAction) -> Result<BpfProgram, BackendError> {
    let target = std::env::consts::ARCH.try_into()?;
    let rules = rules.into_iter().collect();
    SeccompFilter::new(rules, SeccompAction::Allow, action, target)?.try_into()
}

/// Combines programs by a binary search. The number is already loaded.
fn binary_search(pieces: &[(u32, BpfProgram)]) -> BpfProgram {
    let (low, high) = pieces.split_at(pieces.len() / 2);
    let (Some((first, program)), false) = (high.first(), low.is_empty()) else {
        return high.first().map(|(_, program)| program.clone()).unwrap_or_default();
    };
    debug_assert!(!program.is_empty());
    let (low, high) = (binary_search(low), binary_search(high));
    let over_low = u32::try_from(low.len()).unwrap_or(u32::MAX);
    let mut both = vec![
        sock_filter { jf: 1, ..instruction(JUMP_IF_AT_LEAST, *first) },
        instruction(JUMP, over_low),
    ];
    both.extend(low);
    both.extend(high);
    both
}

/// Kills a program that makes a call by an x32 number.
#[cfg(target_arch = "x86_64")]
fn prologue() -> BpfProgram {
    vec![
        LOAD_NUMBER,
        sock_filter { jf: 1, ..instruction(JUMP_IF_AT_LEAST, X32_BIT) },
        instruction(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn prologue() -> BpfProgram {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The return value of a program for a call with this number, if the rules check only the number.
    fn answer(program: &[sock_filter], number: u32) -> u32 {
        let native = match std::env::consts::ARCH {
            "x86_64" => 0xc000_003e,
            "aarch64" => 0xc000_00b7,
            other => panic!("{other}"),
        };
        answer_on(native, program, number)
    }

    fn answer_on(architecture: u32, program: &[sock_filter], number: u32) -> u32 {
        const ARCHITECTURE: u32 = 4;
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = &program[at];
            at += 1;
            let skip = |jumps: bool| usize::from(if jumps { step.jt } else { step.jf });
            match step.code {
                0x20 => loaded = if step.k == ARCHITECTURE { architecture } else { number },
                JUMP_IF_EQUAL => at += skip(loaded == step.k),
                JUMP_IF_AT_LEAST => at += skip(loaded >= step.k),
                JUMP => at += step.k as usize,
                RETURN => return step.k,
                other => panic!("{other:#x}"),
            }
        }
    }

    #[test]
    fn each_syscall_number_gets_the_action_of_its_rules() {
        let (refused, unknown) = (SeccompAction::Errno(1), SeccompAction::Errno(38));
        let some: Vec<i64> = (0..60).map(|number| number * 7).collect();
        let others = [3, 11, 425, 426, 467];
        let whole = |calls: &[i64]| calls.iter().map(|&call| (call, Vec::new())).collect();
        let program =
            compile(vec![(whole(&some), refused.clone()), (whole(&others), unknown.clone())])
                .unwrap();
        for number in 0..600_u32 {
            let expected = match i64::from(number) {
                number if some.contains(&number) => u32::from(refused.clone()),
                number if others.contains(&number) => u32::from(unknown.clone()),
                _ => u32::from(SeccompAction::Allow),
            };
            assert_eq!(answer(&program, number), expected, "{number}");
        }
        for number in 0..600 {
            let other = answer_on(0x4000_0003, &program, number);
            assert_eq!(other, libc::SECCOMP_RET_KILL_PROCESS, "{number}");
        }
        if cfg!(target_arch = "x86_64") {
            assert_eq!(answer(&program, 0x4000_0000 + 5), libc::SECCOMP_RET_KILL_PROCESS);
        }
    }

    #[test]
    fn a_single_rule_compiles() {
        let one = compile(vec![(vec![(9, Vec::new())], SeccompAction::Errno(1))]).unwrap();
        assert_eq!(answer(&one, 9), u32::from(SeccompAction::Errno(1)));
        assert_eq!(answer(&one, 8), u32::from(SeccompAction::Allow));
    }
}
