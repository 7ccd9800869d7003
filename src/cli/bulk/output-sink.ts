import { renameSync, statSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { canonicalPath } from '../../platform/directory.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import type { CliContext, CliOutput } from '../context.ts'

/** Destination of rows. A file has a temporary name until it is published. */
export type OutputSink = {
  /** Resolves when the data is accepted, so that the caller waits for a slow disk or reader. */
  write(data: string | Uint8Array): Promise<void>
  /** Syncs what was written to disk. Nothing may be written afterwards. */
  close(): Promise<void>
  /** Renames the file to its final name and returns the folder to sync; null if there is none. */
  publish(): string | null
  /** Removes a file that is not published. */
  discard(): Promise<void>
}

/** Opens an output; `-` is stdout. */
export async function openSink(
  context: Pick<CliContext, 'stdout'>,
  output: string,
): Promise<OutputSink> {
  if (output === '-') return streamSink(context.stdout)
  const { path, isFile } = resolveOutput(output)
  return isFile ? fileSink(output, path) : deviceSink(output, path)
}

/**
 * Renames all files to their final names. All renames run before the first sync, so that a failure
 * is unlikely to publish only some of the files.
 */
export async function publishAll(sinks: readonly OutputSink[]): Promise<void> {
  const folders = new Set(sinks.map(sink => sink.publish()))
  // Windows cannot open a folder to sync it.
  if (process.platform === 'win32') return
  for (const folder of folders) if (folder !== null) await syncFolder(folder)
}

const streamSink = (stdout: CliOutput): OutputSink => ({
  write: data =>
    new Promise((resolve, reject) => {
      stdout.write(data, error => (error ? reject(error) : resolve()))
    }),
  close: async () => {},
  publish: () => null,
  discard: async () => {},
})

async function fileSink(output: string, path: string): Promise<OutputSink> {
  const partial = partialPath(path)
  const fail = (error: unknown) => Promise.reject(cannotWrite(output, error))
  const handle = await open(partial, 'w').catch(fail)
  return {
    write: data => handle.appendFile(data).catch(fail),
    close: () => closeDurably(handle).catch(fail),
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

/** Writes to a device or pipe, which has no temporary name and cannot be synced. */
async function deviceSink(output: string, path: string): Promise<OutputSink> {
  const fail = (error: unknown) => Promise.reject(cannotWrite(output, error))
  const handle = await open(path, 'w').catch(fail)
  return {
    write: data => handle.appendFile(data).catch(fail),
    close: () => handle.close().catch(fail),
    publish: () => null,
    discard: () => handle.close().catch(() => {}),
  }
}

/**
 * Resolves the links of an output path. Devices and pipes, such as /dev/null, are not regular
 * files.
 */
export function resolveOutput(output: string): { path: string; isFile: boolean } {
  const status = findStatus(output)
  if (output.endsWith('/') || status?.isDirectory()) {
    throw new EvError('cannot_write', `${output} is a folder. Name a file with -o.`)
  }
  return status === undefined || status.isFile()
    ? { path: canonicalPath(output), isFile: true }
    : { path: output, isFile: false }
}

function findStatus(output: string) {
  try {
    return statSync(output, { throwIfNoEntry: false })
  } catch (cause) {
    const message = `${output} cannot be written: ${errorMessage(cause)}. Name another file with -o.`
    throw new EvError('cannot_write', message, { cause })
  }
}

/** Returns the temporary name of a file that is being written. */
export const partialPath = (path: string) => `${path}.partial`

function cannotWrite(output: string, cause: unknown): EvError {
  return new EvError(
    'cannot_write',
    `${output} cannot be written: ${errorMessage(cause)}. The results are saved: correct the cause and run the same command again, or name another file with -o.`,
    { cause },
  )
}

async function closeDurably(handle: FileHandle): Promise<void> {
  await handle.sync()
  await handle.close()
}

/** Syncs a folder: a rename is durable only after that. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
