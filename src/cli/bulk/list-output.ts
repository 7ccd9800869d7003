import { createWriteStream, existsSync, realpathSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { EvError, messageOf } from '../../base/error.ts'
import { LIST_COLUMNS, listValues } from '../../engine/present.ts'
import { createRowWriter, readList } from '../../job/csv.ts'
import type { Database } from '../../store/database.ts'
import { resultPage } from '../../store/items.ts'
import type { Result } from '../../verdict/verdict.ts'
import type { ListFile } from './list-file.ts'

export type OutputOptions = { readonly raw: boolean }

/**
 * Writes every row of the list with its result, in the order of the list. A file appears whole under its
 * name or not at all: until then it is called `….partial`.
 */
export async function writeOutput(
  output: string,
  list: ListFile,
  source: { database: Database; jobId: string },
  options: OutputOptions,
): Promise<void> {
  const rows = outputLines(list, source, options)
  if (output === '-') return pipeline(rows, process.stdout, { end: false })
  try {
    const place = placeOf(output)
    if (!place.isFile) return await pipeline(rows, createWriteStream(place.path))
    await writeWhole(rows, place.path)
  } catch (error) {
    if (error instanceof EvError) throw error
    throw cannotWrite(output, error)
  }
}

/** Tells before the work begins when its output could not be written after it. */
export async function checkOutput(output: string): Promise<void> {
  if (output === '-') return
  try {
    const { path, isFile } = placeOf(output)
    if (!isFile) return
    const partial = `${path}.partial`
    // What is there may be that of a run that writes just now: it is neither shortened nor removed.
    const isThere = existsSync(partial)
    await (await open(partial, 'a')).close()
    if (!isThere) await rm(partial, { force: true })
  } catch (error) {
    throw cannotWrite(output, error)
  }
}

/** Where an output truly goes: through links, and straight into what is no file, such as /dev/null or a pipe. */
function placeOf(output: string): { path: string; isFile: boolean } {
  if (!existsSync(output)) return { path: output, isFile: true }
  const status = statSync(output)
  if (status.isDirectory()) throw new Error('it is a folder')
  return status.isFile()
    ? { path: realpathSync(output), isFile: true }
    : { path: output, isFile: false }
}

async function writeWhole(rows: AsyncIterable<string>, path: string): Promise<void> {
  const partial = `${path}.partial`
  try {
    await pipeline(rows, createWriteStream(partial))
    await makeDurable(partial)
    await rename(partial, path)
    // Windows has no handle on a folder.
    if (process.platform !== 'win32') await makeDurable(dirname(path))
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
}

function cannotWrite(output: string, cause: unknown): EvError {
  return new EvError(
    'cannot_write',
    `${output} cannot be written: ${messageOf(cause)}. Name another place with -o; nothing that was found out is lost, the same command goes on.`,
    { cause },
  )
}

async function* outputLines(
  list: ListFile,
  { database, jobId }: { database: Database; jobId: string },
  { raw }: OutputOptions,
): AsyncGenerator<string> {
  const writer = createRowWriter(list.dialect, LIST_COLUMNS, { raw })
  yield writer.header()
  let after = 0
  for await (const batch of readList(list.bytes(), list.dialect)) {
    const page = await resultPage(database, { jobId, after, max: batch.length })
    let text = ''
    for (const [index, { cells }] of batch.entries()) {
      const row = page[index]
      if (row?.result == null) {
        throw new EvError('internal', `Row ${after + index + 1} of the list has no result.`)
      }
      text += writer.row(cells, listValues(JSON.parse(row.result) as Result))
    }
    after += batch.length
    yield text
  }
}

/** A rename is durable only when what it names and the folder are. */
async function makeDurable(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
