/** The files of a session in the form of Mastra's WorkspaceFilesystem. */
import { posix } from "node:path";

import { orNull, writeWithParents } from "./adapter_files.js";
import { AlreadyExists, Denied, IsDirectory, NotADirectory, NotEmpty, NotFound } from "./errors.js";
import type { Stat } from "./files.js";
import { fromPackage } from "./framework.js";
import type { Session } from "./session.js";

type Errors = typeof import("@mastra/core/workspace");
type Content = string | Uint8Array;

interface WriteOptions {
  recursive?: boolean;
  overwrite?: boolean;
  expectedMtime?: Date;
}

interface FileEntry {
  name: string;
  type: "file" | "directory";
  size: number;
  isSymlink?: boolean;
}

interface ListOptions {
  recursive?: boolean;
  extension?: string | string[];
  maxDepth?: number;
}

/** Opens the session's files for `new Workspace({ filesystem })`. */
export async function filesystem(session: Session): Promise<MastraFilesystem> {
  const [errors, info] = await Promise.all([
    fromPackage("@mastra/core", () => import("@mastra/core/workspace")),
    session.info(),
  ]);
  return new MastraFilesystem(session, errors, info.roots);
}

/** A path that is not below a root or `/tmp` is taken from the first root, with or without a slash at its start. */
export class MastraFilesystem {
  readonly id = "toolcrib";
  readonly name = "Toolcrib";
  readonly provider = "toolcrib";
  readonly basePath: string;
  status = "ready" as const;
  readonly #session: Session;
  readonly #errors: Errors;
  readonly #roots: readonly string[];

  /** @internal */
  constructor(session: Session, errors: Errors, roots: readonly string[]) {
    this.#session = session;
    this.#errors = errors;
    this.#roots = roots;
    this.basePath = roots[0] ?? "/";
  }

  getInstructions(): string {
    return `Files of ${this.#roots.join(", ")}. Relative paths start at ${this.basePath}. Every change can be undone.`;
  }

  resolveAbsolutePath(path: string): string {
    const known = [...this.#roots, "/tmp"].some((top) => path === top || path.startsWith(`${top}/`));
    return known ? path : posix.join(this.basePath, path);
  }

  async realpath(path: string): Promise<string> {
    return this.#translate(path, "file", this.#session.realpath(this.resolveAbsolutePath(path)));
  }

  async readFile(path: string, options: { encoding?: BufferEncoding } = {}): Promise<string | Buffer> {
    const bytes = await this.#translate(path, "file", this.#session.read(this.resolveAbsolutePath(path)));
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    return options.encoding ? buffer.toString(options.encoding) : buffer;
  }

  async writeFile(path: string, content: Content, options: WriteOptions = {}): Promise<void> {
    const target = this.resolveAbsolutePath(path);
    await this.#checkBeforeWrite(path, target, options);
    await this.#translate(path, "directory", writeWithParents(this.#session, target, content));
  }

  async appendFile(path: string, content: Content): Promise<void> {
    const target = this.resolveAbsolutePath(path);
    await this.#translate(path, "directory", writeWithParents(this.#session, target, content, { append: true }));
  }

  async deleteFile(path: string, options: { force?: boolean; recursive?: boolean } = {}): Promise<void> {
    const target = this.resolveAbsolutePath(path);
    const found = await orNull(this.#session.stat(target, { follow: false }));
    if (found?.kind === "directory" && !options.recursive) {
      throw new this.#errors.IsDirectoryError(path);
    }
    await this.#remove(path, "file", options);
  }

  async rmdir(path: string, options: { force?: boolean; recursive?: boolean } = {}): Promise<void> {
    const found = await orNull(this.#session.stat(this.resolveAbsolutePath(path)));
    if (found && found.kind !== "directory") {
      throw new this.#errors.NotDirectoryError(path);
    }
    await this.#remove(path, "directory", options);
  }

  async copyFile(src: string, dest: string, options: { overwrite?: boolean; recursive?: boolean } = {}): Promise<void> {
    const [from, to] = [this.resolveAbsolutePath(src), this.resolveAbsolutePath(dest)];
    const kind = (await this.#translate(src, "file", this.#session.stat(from))).kind;
    if (kind === "directory") {
      if (!options.recursive) {
        throw new this.#errors.IsDirectoryError(src);
      }
      await this.#session.mkdir(to);
      for (const { name } of (await this.#session.list(from)).entries) {
        await this.copyFile(posix.join(from, name), posix.join(to, name), options);
      }
      return;
    }
    await this.#checkBeforeWrite(dest, to, options);
    let append = false;
    for await (const part of this.#session.readParts(from)) {
      await this.#translate(dest, "directory", writeWithParents(this.#session, to, part, { append }));
      append = true;
    }
  }

  async moveFile(src: string, dest: string, options: { overwrite?: boolean } = {}): Promise<void> {
    const [from, to] = [this.resolveAbsolutePath(src), this.resolveAbsolutePath(dest)];
    const overwrite = options.overwrite !== false;
    await this.#session.mkdir(posix.dirname(to));
    try {
      await this.#session.move(from, to, { overwrite });
    } catch (error) {
      throw error instanceof AlreadyExists ? new this.#errors.FileExistsError(dest) : this.#mastraError(src, "file", error);
    }
  }

  async mkdir(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    const parents = options.recursive !== false;
    await this.#translate(path, "directory", this.#session.mkdir(this.resolveAbsolutePath(path), { parents }));
  }

  async readdir(path: string, options: ListOptions = {}): Promise<FileEntry[]> {
    const wanted = options.extension === undefined ? undefined : [options.extension].flat();
    const found = await this.#list(path, "", options.recursive ? (options.maxDepth ?? Number.POSITIVE_INFINITY) : 1);
    return found.filter(({ name, type }) => type === "directory" || (wanted?.some((end) => name.endsWith(end)) ?? true));
  }

  async exists(path: string): Promise<boolean> {
    return (await orNull(this.#session.stat(this.resolveAbsolutePath(path)))) !== null;
  }

  async stat(path: string): Promise<{
    name: string;
    path: string;
    type: "file" | "directory";
    size: number;
    createdAt: Date;
    modifiedAt: Date;
  }> {
    const absolute = this.resolveAbsolutePath(path);
    const { kind, size, modified } = await this.#translate(path, "file", this.#session.stat(absolute));
    const type = kind === "directory" ? "directory" : "file";
    // The program does not report when a file was created.
    const times = { createdAt: modified, modifiedAt: modified };
    return { name: posix.basename(absolute), path: absolute, type, size: type === "file" ? size : 0, ...times };
  }

  async #list(path: string, prefix: string, depth: number): Promise<FileEntry[]> {
    const directory = posix.join(this.resolveAbsolutePath(path), prefix);
    const { entries } = await this.#translate(path, "directory", this.#session.list(directory));
    const found: FileEntry[] = [];
    for (const { name, kind, size } of entries) {
      const isSymlink = kind === "symlink";
      const followed = isSymlink ? await orNull(this.#session.stat(posix.join(directory, name))) : { kind, size };
      const type = followed?.kind === "directory" ? "directory" : "file";
      const relative = posix.join(prefix, name);
      found.push({ name: relative, type, size: followed?.size ?? 0, ...(isSymlink ? { isSymlink } : {}) });
      if (type === "directory" && !isSymlink && depth > 1) {
        found.push(...(await this.#list(path, relative, depth - 1)));
      }
    }
    return found;
  }

  async #checkBeforeWrite(path: string, target: string, options: WriteOptions): Promise<void> {
    const { recursive, overwrite, expectedMtime } = options;
    if (recursive === false && !(await this.exists(posix.dirname(target)))) {
      throw new this.#errors.DirectoryNotFoundError(posix.dirname(path));
    }
    if (overwrite !== false && expectedMtime === undefined) {
      return;
    }
    const found: Stat | null = await orNull(this.#session.stat(target));
    if (found && overwrite === false) {
      throw new this.#errors.FileExistsError(path);
    }
    if (found && expectedMtime && found.modified.getTime() !== expectedMtime.getTime()) {
      throw new this.#errors.StaleFileError(path, expectedMtime, found.modified);
    }
  }

  async #remove(path: string, expected: "file" | "directory", options: { force?: boolean; recursive?: boolean }) {
    const { recursive = false, force = false } = options;
    const removed = this.#session.remove(this.resolveAbsolutePath(path), { recursive, missingOk: force });
    await this.#translate(path, expected, removed);
  }

  async #translate<Result>(path: string, expected: "file" | "directory", result: Promise<Result>): Promise<Result> {
    try {
      return await result;
    } catch (error) {
      throw this.#mastraError(path, expected, error);
    }
  }

  #mastraError(path: string, expected: "file" | "directory", error: unknown): unknown {
    const errors = this.#errors;
    if (error instanceof NotFound) {
      return expected === "file" ? new errors.FileNotFoundError(path) : new errors.DirectoryNotFoundError(path);
    }
    if (error instanceof Denied) {
      return Object.assign(new errors.PermissionError(path, "access"), { message: error.message, cause: error });
    }
    const classes = [
      [IsDirectory, errors.IsDirectoryError],
      [NotADirectory, errors.NotDirectoryError],
      [NotEmpty, errors.DirectoryNotEmptyError],
      [AlreadyExists, errors.FileExistsError],
    ] as const;
    const Class = classes.find(([ours]) => error instanceof ours)?.[1];
    return Class ? new Class(path) : error;
  }
}
