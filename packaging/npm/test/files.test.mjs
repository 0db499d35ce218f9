import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { runInNewContext } from "node:vm";

import { AlreadyExists, Conflict, Denied, IsDirectory, LimitExceeded, NotADirectory, NotEmpty, NotFound } from "../dist/index.js";
import { open } from "./workspace.mjs";

const allBytes = Uint8Array.from({ length: 256 }, (_, index) => index);

test("bytes are written and read back", async (t) => {
  const { session, root } = await open(t);
  const written = await session.write("all.bin", allBytes);
  assert.equal(written.created, true);
  assert.equal(typeof written.change, "number");
  assert.deepEqual([...(await session.read("all.bin"))], [...allBytes]);
  assert.deepEqual([...(await session.read("all.bin", { offset: 10, limit: 3 }))], [10, 11, 12]);
  assert.deepEqual([...(await session.read("all.bin", { offset: 254, limit: 30 }))], [254, 255]);
  assert.deepEqual([...(await session.read("all.bin", { offset: 1000 }))], []);
  assert.deepEqual([...(await readFile(join(root, "all.bin")))], [...allBytes]);
  assert.equal((await session.write("all.bin", "text")).created, false);
  await session.write("all.bin", " more", { append: true });
  assert.equal(await session.readText("all.bin"), "text more");
  await session.write("empty", "");
  assert.equal((await session.read("empty")).length, 0);
});

test("a file of more than one part is read completely", async (t) => {
  const { session } = await open(t);
  const part = Buffer.alloc(20 * 1024 * 1024, "toolcrib");
  await session.write("large", part);
  await session.write("large", part, { append: true });
  const found = Buffer.from(await session.read("large"));
  assert.ok(found.equals(Buffer.concat([part, part])));
  const sizes = [];
  for await (const one of session.readParts("large")) {
    sizes.push(one.length);
  }
  assert.deepEqual(sizes, [16, 16, 8].map((size) => size * 1024 * 1024));
});

test("a write that is too large is refused before it is sent", async (t) => {
  const { session } = await open(t);
  await assert.rejects(session.write("large", new Uint8Array(257 * 1024 * 1024)), LimitExceeded);
  assert.equal((await session.list()).entries.length, 0);
});

test("data that is neither bytes nor text is refused before it is sent", async (t) => {
  const { session } = await open(t, { "keep.txt": "keep" });
  const process = await session.spawn(["cat"]);
  for (const data of [{ a: 1 }, undefined, null, 5, [1, 2], new ArrayBuffer(2), new Uint16Array(2), new Blob(["x"])]) {
    await assert.rejects(session.write("keep.txt", data), /^TypeError: `data` must be a Uint8Array or a string, not /);
    await assert.rejects(process.stdin.write(data), TypeError);
    if (data !== undefined) {
      await assert.rejects(session.exec("cat > keep.txt", { stdin: data }), /^TypeError: `stdin` must be /);
    }
  }
  await process.stdin.close();
  assert.equal((await process.stdout.bytes()).length, 0);
  assert.equal(await session.readText("keep.txt"), "keep");
  await session.write("keep.txt", runInNewContext("new Uint8Array([65])"));
  assert.equal(await session.readText("keep.txt"), "A");
});

test("a file can be made executable, and keeps its mode", async (t) => {
  const { session, root } = await open(t);
  await session.write("run.sh", "#!/bin/sh\necho ran\n", { executable: true });
  await session.write("run.sh", "#!/bin/sh\necho again\n");
  assert.equal((await stat(join(root, "run.sh"))).mode & 0o111, 0o111);
  assert.equal((await session.exec(["./run.sh"])).stdoutText, "again\n");
});

test("stat tells files, directories and links apart", async (t) => {
  const { session, root } = await open(t, { "a.txt": "12345", "d/x": "" });
  symlinkSync("a.txt", join(root, "link"));
  const file = await session.stat("a.txt");
  assert.equal(file.kind, "file");
  assert.equal(file.size, 5);
  assert.equal(file.mode & 0o777, (await stat(join(root, "a.txt"))).mode & 0o777);
  assert.ok(Math.abs(file.modified.getTime() - Date.now()) < 3_600_000);
  assert.equal((await session.stat("d")).kind, "directory");
  assert.equal((await session.stat("link")).kind, "file");
  const link = await session.stat("link", { follow: false });
  assert.deepEqual([link.kind, link.target], ["symlink", "a.txt"]);
  assert.equal(await session.realpath("link"), join(root, "a.txt"));
  await assert.rejects(session.stat("missing"), NotFound);
});

test("directories are made, listed, moved and removed", async (t) => {
  const { session } = await open(t, { "b.txt": "bb", "a/x": "" });
  assert.equal((await session.mkdir("new/deep")).created, true);
  assert.equal((await session.mkdir("new/deep")).created, false);
  await assert.rejects(session.mkdir("new/deep", { existOk: false }), AlreadyExists);
  const { entries, truncated } = await session.list(".");
  assert.deepEqual(entries.map(({ name, kind }) => `${name} ${kind}`), ["a directory", "b.txt file", "new directory"]);
  assert.equal(truncated, false);
  await session.move("b.txt", "new/c.txt");
  await session.write("other", "x");
  await assert.rejects(session.move("other", "new/c.txt"), AlreadyExists);
  await session.move("other", "new/c.txt", { overwrite: true });
  await assert.rejects(session.remove("new"), NotEmpty);
  await session.remove("new", { recursive: true });
  await assert.rejects(session.remove("new"), NotFound);
  assert.equal((await session.remove("new", { missingOk: true })).removed, 0);
  assert.deepEqual((await session.list()).entries.map(({ name }) => name), ["a"]);
});

test("errors have classes", async (t) => {
  const { session, top } = await open(t, { "d/x": "" });
  await assert.rejects(session.read("missing"), NotFound);
  await assert.rejects(session.read("d"), IsDirectory);
  await assert.rejects(session.list("d/x"), NotADirectory);
  await assert.rejects(session.write(join(top, "outside.txt"), "x"), Denied);
});

test("restore takes back raw writes, tool edits and commands", async (t) => {
  const { session } = await open(t, { "a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n" });
  const snapshot = await session.snapshot();
  await session.write("a.txt", "changed");
  (await session.call("Edit", { file_path: "b.txt", old_string: "b", new_string: "changed" })).orThrow();
  await session.exec("rm c.txt; echo new > d.txt");
  const restored = await session.restore(snapshot);
  assert.ok(restored.undone.length >= 3);
  assert.equal(await session.readText("a.txt"), "a\n");
  assert.equal(await session.readText("b.txt"), "b\n");
  assert.equal(await session.readText("c.txt"), "c\n");
  await assert.rejects(session.read("d.txt"), NotFound);
});

test("restore refuses to overwrite edits of others", async (t) => {
  const { session, root } = await open(t, { "a.txt": "a\n" });
  const snapshot = await session.snapshot();
  await session.write("a.txt", "ours\n");
  const { writeFile } = await import("node:fs/promises");
  await writeFile(join(root, "a.txt"), "theirs\n");
  await assert.rejects(session.restore(snapshot), Conflict);
  assert.equal(await session.readText("a.txt"), "theirs\n");
});

test("commands and file operations share /tmp", async (t) => {
  const { session } = await open(t);
  await session.write("/tmp/shared.txt", "from the API");
  assert.equal((await session.exec("cat /tmp/shared.txt; echo from bash > /tmp/back.txt")).stdoutText, "from the API");
  assert.equal(await session.readText("/tmp/back.txt"), "from bash\n");
});
