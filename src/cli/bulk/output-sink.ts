import { existsSync, realpathSync, renameSync, statSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { EvError, errorMessage } from '../../platform/error.ts'
import type { CliContext, CliOutput } from '../context.ts'

/** Where rows go. What goes to a file has another name there until it is published. */
export type OutputSink = {
  /** Resolves when the text is taken: whoever waits is never ahead of a slow disk or reader. */
  write(text: string): Promise<void>
  /** Nothing follows: what was written becomes durable. */
  close(): Promise<void>
  /** Gives a file its name, and tells the folder that has to become durable for it. */
  publish(): string | null
  /** Leaves nothing behind that is not published. */
  discard(): Promise<void>
}

/** Opens an output; `-` is stdout. */
export async function openSink(
  context: Pick<CliContext, 'stdout'>,
  output: string,
): Promise<OutputSink> {
  if (output === '-') return streamSink(context.stdout)
  const { path, isFile } = placeOf(output)
  return isFile ? fileSink(output, path) : deviceSink(output, path)
}

/** All together or none, as far as that goes: nothing else happens between the first name and the last. */
export async function publishAll(sinks: readonly OutputSink[]): Promise<void> {
  const folders = new Set(sinks.map(sink => sink.publish()))
  // Windows has no handle on a folder.
  if (process.platform === 'win32') return
  for (const folder of folders) if (folder !== null) await makeDurable(folder)
}

const streamSink = (stdout: CliOutput): OutputSink => ({
  write: text =>
    new Promise((resolve, reject) => {
      stdout.write(text, error => (error ? reject(error) : resolve()))
    }),
  close: async () => {},
  publish: () => null,
  discard: async () => {},
})

async function fileSink(output: string, path: string): Promise<OutputSink> {
  const partial = partialOf(path)
  const notify = (error: unknown) => Promise.reject(cannotWrite(output, error))
  const handle = await open(partial, 'w').catch(notify)
  return {
    write: text => handle.appendFile(text).catch(notify),
    close: () => closeDurably(handle).catch(notify),
    publish() {
      try {
        renameSync(partial, path)
        return dirname(path)
      } catch (error) {
        throw cannotWrite(output, error)
      }
    },
    async discard() {
      await handle.close().catch(() => {})
      await rm(partial, { force: true })
    },
  }
}

/** What is no file has no other name, and nothing to be made durable. */
async function deviceSink(output: string, path: string): Promise<OutputSink> {
  const notify = (error: unknown) => Promise.reject(cannotWrite(output, error))
  const handle = await open(path, 'w').catch(notify)
  return {
    write: text => handle.appendFile(text).catch(notify),
    close: () => handle.close().catch(notify),
    publish: () => null,
    discard: () => handle.close().catch(() => {}),
  }
}

/** Where an output truly goes: through links, and straight into what is no file, such as /dev/null or a pipe. */
export function placeOf(output: string): { path: string; isFile: boolean } {
  const status = statSync(output, { throwIfNoEntry: false })
  if (output.endsWith('/') || status?.isDirectory()) {
    throw cannotWrite(output, new Error('it is a folder'))
  }
  return status === undefined || status.isFile()
    ? { path: truePath(output), isFile: true }
    : { path: output, isFile: false }
}

/** The same for all names of a file, also of one that is not there yet. */
export function truePath(path: string): string {
  if (existsSync(path)) return realpathSync(path)
  const folder = dirname(resolve(path))
  return existsSync(folder) ? join(realpathSync(folder), basename(path)) : resolve(path)
}

/** What a file is called until it is whole. */
export const partialOf = (path: string) => `${path}.partial`

export function cannotWrite(output: string, cause: unknown): EvError {
  return new EvError(
    'cannot_write',
    `${output} cannot be written: ${errorMessage(cause)}. Name another place with -o; nothing that was found out is lost, the same command goes on.`,
    { cause },
  )
}

async function closeDurably(handle: FileHandle): Promise<void> {
  await handle.sync()
  await handle.close()
}

/** A rename is durable only when its folder is. */
async function makeDurable(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
