//! Rules about system calls as a program for the kernel.
//!
//! The kernel compiles a new program, and tries it on every number that a call can have, to know which it need
//! not ask about again. With one comparison after the other for each of them that takes as long as all the mounts
//! of a view; so the numbers are halved until few are left, and what is asked of all is asked once.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompFilter, SeccompRule, sock_filter,
};

/// Rules about one call, by its number: what becomes of it if one of them fits, or if there is none.
pub(super) type Rules = Vec<(i64, Vec<SeccompRule>)>;

/// So many numbers are compared one after the other.
const FEW: usize = 6;

const LOAD_NUMBER: sock_filter = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 }; // BPF_LD | BPF_W | BPF_ABS
const JUMP_IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
const ANSWER: u16 = 0x06; // BPF_RET | BPF_K

/// The numbers of the 32-bit calls that a 64-bit program can make where the kernel has them: the rules
/// know only the others.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// A program that answers to calls by their rules, and lets all others happen. Programs of another
/// architecture are ended: their calls have other numbers.
pub(super) fn of(all: Vec<(Rules, SeccompAction)>) -> Result<BpfProgram, BackendError> {
    let mut sorted: BTreeMap<i64, (Vec<SeccompRule>, SeccompAction)> = BTreeMap::new();
    for (rules, action) in all {
        sorted.extend(rules.into_iter().map(|(call, rules)| (call, (rules, action.clone()))));
    }
    let mut pieces: Vec<(Rules, SeccompAction)> = Vec::new();
    for (call, (rules, action)) in sorted {
        match pieces.last_mut() {
            Some((piece, same))
                if piece.len() < FEW && *same == action && is_whole(piece) && rules.is_empty() =>
            {
                piece.push((call, rules));
            }
            _ => pieces.push((vec![(call, rules)], action)),
        }
    }
    let pieces: Vec<(u32, BpfProgram)> = pieces.into_iter().map(piece).collect::<Result<_, _>>()?;
    let mut program = architecture()?;
    program.extend(prologue());
    program.push(LOAD_NUMBER);
    program.extend(halved(&pieces));
    Ok(program)
}

/// Whether nothing but their numbers is looked at.
fn is_whole(rules: &Rules) -> bool {
    rules.iter().all(|(_, rules)| rules.is_empty())
}

/// Has every answer `from` be the answer `to`, which the compiler of programs does not know.
pub(super) fn replace_answer(program: &mut BpfProgram, from: u32, to: u32) {
    for step in program.iter_mut().filter(|step| step.code == ANSWER && step.k == from) {
        step.k = to;
    }
}

/// A program for a few calls, and the first of their numbers.
fn piece((rules, action): (Rules, SeccompAction)) -> Result<(u32, BpfProgram), BackendError> {
    let number = |call: i64| u32::try_from(call).unwrap_or(u32::MAX);
    let first = rules.first().map_or(0, |(call, _)| number(*call));
    if is_whole(&rules) {
        return Ok((first, compared(&rules, &action)));
    }
    let program = compiled(rules, action)?;
    Ok((first, program.get(architecture()?.len()..).unwrap_or_default().to_vec()))
}

/// Compares the number with each of these; the answer to all of them is the last step, after the one to none.
fn compared(rules: &Rules, action: &SeccompAction) -> BpfProgram {
    let answer = |action: SeccompAction| step(ANSWER, u32::from(action));
    let count = rules.len();
    let compare = rules.iter().enumerate().map(|(at, (call, _))| {
        let over = u8::try_from(count - at).unwrap_or(u8::MAX);
        sock_filter { jt: over, ..step(JUMP_IF_EQUAL, u32::try_from(*call).unwrap_or(u32::MAX)) }
    });
    let mut program: BpfProgram = compare.collect();
    program.extend([answer(SeccompAction::Allow), answer(action.clone())]);
    program
}

fn step(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

/// What every program begins with: the end of whoever is of another architecture.
fn architecture() -> Result<BpfProgram, BackendError> {
    let mut program = compiled(Vec::new(), SeccompAction::Errno(0))?;
    // The answer to everybody else.
    program.pop();
    Ok(program)
}

fn compiled(rules: Rules, action: SeccompAction) -> Result<BpfProgram, BackendError> {
    let target = std::env::consts::ARCH.try_into()?;
    let rules = rules.into_iter().collect();
    SeccompFilter::new(rules, SeccompAction::Allow, action, target)?.try_into()
}

/// One program out of several, with the number already loaded.
fn halved(pieces: &[(u32, BpfProgram)]) -> BpfProgram {
    let (low, high) = pieces.split_at(pieces.len() / 2);
    let (Some((first, program)), false) = (high.first(), low.is_empty()) else {
        return high.first().map(|(_, program)| program.clone()).unwrap_or_default();
    };
    debug_assert!(!program.is_empty());
    let (low, high) = (halved(low), halved(high));
    let over_low = u32::try_from(low.len()).unwrap_or(u32::MAX);
    let mut both =
        vec![sock_filter { jf: 1, ..step(JUMP_IF_AT_LEAST, *first) }, step(JUMP, over_low)];
    both.extend(low);
    both.extend(high);
    both
}

/// Ends a program that makes a call by a number which no rule knows.
#[cfg(target_arch = "x86_64")]
fn prologue() -> BpfProgram {
    vec![
        LOAD_NUMBER,
        sock_filter { jf: 1, ..step(JUMP_IF_AT_LEAST, X32) },
        step(ANSWER, libc::SECCOMP_RET_KILL_PROCESS),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn prologue() -> BpfProgram {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program answers to a call of this number, if no rule looks at more than that.
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
                ANSWER => return step.k,
                other => panic!("{other:#x}"),
            }
        }
    }

    #[test]
    fn each_number_gets_the_answer_of_its_rules() {
        let (refused, unknown) = (SeccompAction::Errno(1), SeccompAction::Errno(38));
        let some: Vec<i64> = (0..60).map(|number| number * 7).collect();
        let others = [3, 11, 425, 426, 467];
        let whole = |calls: &[i64]| calls.iter().map(|&call| (call, Vec::new())).collect();
        let program =
            of(vec![(whole(&some), refused.clone()), (whole(&others), unknown.clone())]).unwrap();
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
    fn one_call_and_none_make_programs_too() {
        let one = of(vec![(vec![(9, Vec::new())], SeccompAction::Errno(1))]).unwrap();
        assert_eq!(answer(&one, 9), u32::from(SeccompAction::Errno(1)));
        assert_eq!(answer(&one, 8), u32::from(SeccompAction::Allow));
    }
}
