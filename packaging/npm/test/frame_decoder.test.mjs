import assert from "node:assert/strict";
import { test } from "node:test";

import { encodeLine } from "../dist/frame_decoder.js";
import { FrameDecoder, FrameError } from "../dist/index.js";

const bytes = Buffer.from('{"id":1}\n{"id":2,"bytes":5}\nab\ncd{"id":3,"bytes":0}\n{"text":"\u00e9"}\n');
const wanted = [
  [{ id: 1 }, ""],
  [{ id: 2, bytes: 5 }, "ab\ncd"],
  [{ id: 3, bytes: 0 }, ""],
  [{ text: "\u00e9" }, ""],
];

for (const size of [1, 2, 3, 7, 1000]) {
  test(`chunks of ${size} bytes give the same messages`, () => {
    const decoder = new FrameDecoder();
    const found = [];
    for (let at = 0; at < bytes.length; at += size) {
      for (const { message, payload } of decoder.push(bytes.subarray(at, at + size))) {
        found.push([message, Buffer.from(payload).toString()]);
      }
    }
    assert.deepEqual(found, wanted);
    assert.equal(decoder.incomplete, false);
  });
}

test("a message that has not ended is incomplete", () => {
  const decoder = new FrameDecoder();
  assert.deepEqual([...decoder.push(Buffer.from('{"id":1,"bytes":3}\nab'))], []);
  assert.equal(decoder.incomplete, true);
});

for (const line of ["no JSON", "[1]", '{"bytes":-1}', '{"bytes":1e300}', '{"bytes":"5"}']) {
  test(`${line} is refused`, () => {
    assert.throws(() => [...new FrameDecoder().push(Buffer.from(`${line}\n`))], FrameError);
  });
}

test("a lone surrogate is not sent", () => {
  for (const path of ["\udc80", "a\ud800b", "\\\udc80"]) {
    assert.throws(() => encodeLine({ id: 1, path }, Buffer.from("x")), FrameError);
  }
  for (const path of ["\u{1f600}", "\\udc80", "ä"]) {
    assert.deepEqual(JSON.parse(Buffer.from(encodeLine({ id: 1, path })).toString()), { id: 1, path });
  }
});
