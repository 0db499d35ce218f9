/** Imports of frameworks, which the package does not install. */

/** Imports parts of a framework. If it is missing, the error has the command that installs it. */
export async function fromPackage<Parts>(name: string, load: () => Promise<Parts>): Promise<Parts> {
  try {
    return await load();
  } catch (error) {
    if (!(error instanceof Error) || (error as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") {
      throw error;
    }
    const message = `${error.message}. This adapter needs its framework: npm install ${name}`;
    throw new Error(message, { cause: error });
  }
}
