//! Tests of `memory_compare.c`.

#![expect(unsafe_code, reason = "the functions are those of a C library")]

use std::cmp::Ordering;
use std::ffi::c_int;

use proptest::prelude::*;

unsafe extern "C" {
    #[cfg_attr(not(target_env = "musl"), link_name = "toolcrib_memcmp")]
    fn memcmp(one: *const u8, other: *const u8, length: usize) -> c_int;
    #[cfg_attr(not(target_env = "musl"), link_name = "toolcrib_bcmp")]
    fn bcmp(one: *const u8, other: *const u8, length: usize) -> c_int;
}

/// Compares the common length, as iterators over the bytes do and as the functions do.
fn check(one: &[u8], other: &[u8]) {
    let length = one.len().min(other.len());
    let (one, other) = (&one[..length], &other[..length]);
    let expected = one.iter().cmp(other.iter());
    // SAFETY: both slices have this length.
    let (order, differs) = unsafe {
        (memcmp(one.as_ptr(), other.as_ptr(), length), bcmp(one.as_ptr(), other.as_ptr(), length))
    };
    assert_eq!(order.cmp(&0), expected, "{one:?} {other:?}");
    assert_eq!(differs != 0, expected != Ordering::Equal, "{one:?} {other:?}");
}

#[test]
fn each_byte_counts_at_each_length_and_alignment() {
    let zeros = [0; 128];
    for (start, length) in (0..9).flat_map(|start| (0..100).map(move |length| (start, length))) {
        let one = &zeros[start..start + length];
        check(one, &zeros[..length]);
        for at in 0..length {
            let mut other = zeros;
            other[start + at] = 0x80;
            // Bytes after the end differ as well.
            other[start + length] = 1;
            check(one, &other[start..start + length]);
            check(&other[start..start + length], one);
        }
        let mut longer = zeros;
        longer[start + length] = 1;
        check(one, &longer[start..start + length]);
    }
}

proptest! {
    #[test]
    fn the_first_difference_decides(
        same in proptest::collection::vec(any::<u8>(), 0..200),
        one in proptest::collection::vec(any::<u8>(), 0..40),
        other in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        check(&[&same[..], &one].concat(), &[&same[..], &other].concat());
    }
}
