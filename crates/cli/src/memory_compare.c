// `memcmp` and `bcmp` that compare words instead of bytes.
//
// Those of musl, and of Zig, which links the releases, compare byte by byte. Every comparison of slices and strings in Rust
// calls one of them. These are linked instead of them. They are in C, in an object of their own, because the optimizer
// knows both names, and could replace the body of a Rust function by a call of itself.

#include <stddef.h>
#include <stdint.h>

typedef uint64_t __attribute__((aligned(1), may_alias)) word;

#define WORD sizeof(word)

static word load(const unsigned char *from) {
    return *(const word *)from;
}

// The first byte becomes the most significant one.
static word in_order(word read) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return __builtin_bswap64(read);
#else
    return read;
#endif
}

// Nonzero if the bytes differ.
int BCMP(const void *one, const void *other, size_t length) {
    const unsigned char *a = one, *b = other;
    if (length < WORD) {
        for (size_t at = 0; at < length; at++) {
            if (a[at] != b[at]) return 1;
        }
        return 0;
    }
    size_t at = 0;
    for (; length - at >= 4 * WORD; at += 4 * WORD) {
        word different = (load(a + at) ^ load(b + at)) |
                         (load(a + at + WORD) ^ load(b + at + WORD)) |
                         (load(a + at + 2 * WORD) ^ load(b + at + 2 * WORD)) |
                         (load(a + at + 3 * WORD) ^ load(b + at + 3 * WORD));
        if (different) return 1;
    }
    for (; length - at >= WORD; at += WORD) {
        if (load(a + at) != load(b + at)) return 1;
    }
    // The last word may overlap with the one before.
    return load(a + length - WORD) != load(b + length - WORD);
}

// The order of the first bytes that differ.
int MEMCMP(const void *one, const void *other, size_t length) {
    const unsigned char *a = one, *b = other;
    size_t at = 0;
    for (; length - at >= WORD; at += WORD) {
        word left = load(a + at), right = load(b + at);
        if (left != right) return in_order(left) < in_order(right) ? -1 : 1;
    }
    for (; at < length; at++) {
        if (a[at] != b[at]) return a[at] - b[at];
    }
    return 0;
}
