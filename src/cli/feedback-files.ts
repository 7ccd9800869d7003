import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EvError, errorMessage } from '../platform/error.ts'
import { type CliContext, inCwd } from './context.ts'

/** Folders of a Maildir that hold messages; `tmp` holds those that are being delivered. */
const MAILDIR_FOLDERS = ['cur', 'new']

/**
 * Yields the files to import, each as a stream: the file, stdin for `-`, the messages of a Maildir,
 * or the files of a folder in the order of their names.
 */
export async function* openInputs(
  context: CliContext,
  path: string,
): AsyncGenerator<AsyncIterable<Uint8Array>> {
  if (path === '-') {
    yield context.stdin
    return
  }
  for (const file of await listFiles(inCwd(context, path), path)) yield createReadStream(file)
}

async function listFiles(path: string, shown: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    const names = await readdir(path)
    const folders = MAILDIR_FOLDERS.filter(name => names.includes(name))
    const all = await Promise.all(
      (folders.length === 0 ? ['.'] : folders).map(folder => filesIn(join(path, folder))),
    )
    return all.flat()
  } catch (cause) {
    const why = errorMessage(cause)
    throw new EvError('no_input', `${shown} cannot be read: ${why}.`, { cause })
  }
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  return entries
    .filter(entry => entry.isFile() && !entry.name.startsWith('.'))
    .map(({ name }) => join(folder, name))
    .sort()
}
