import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, mkdirSync, statSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { detectDialect, type ListDialect } from '../../csv/csv.ts'
import { readHead } from '../../jobs/import/submission.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import type { CliContext } from '../context.ts'

/** A list on disk, read twice: for its addresses, and again when its rows are written with their results. */
export type ListFile = {
  readonly path: string
  /** Of the whole content: by it a list is known again. */
  readonly digest: string
  readonly dialect: ListDialect
  /** Whether it is our own copy of what came from stdin. */
  readonly kept: boolean
  /** Its content; throws at the end of what is not the same content any more. */
  bytes(): AsyncIterable<Uint8Array>
}

export type ListFileOptions = {
  readonly column?: string
  readonly encoding?: string
  readonly header?: boolean
  /** Says of a path that it is a copy of what came from stdin. */
  readonly kept?: boolean
}

/** Opens a list; what comes from stdin or a pipe is kept in the data directory, as it is needed twice. */
export async function openList(
  context: Pick<CliContext, 'stdin'>,
  given: string,
  dataDir: string,
  options: ListFileOptions,
): Promise<ListFile> {
  const stream = streamOf(context, given)
  const path = stream === null ? resolve(given) : await keepStream(given, stream, dataDir)
  const kept = options.kept ?? stream !== null
  try {
    const digest = await digestOf(path)
    const { head, complete } = await readHead(path)
    const dialect = detectDialect(head, { ...dialectOptions(options), complete })
    return {
      path,
      digest,
      dialect,
      kept,
      bytes: () => sameBytes(given, path, digest),
    }
  } catch (error) {
    throw unreadable(given, error)
  }
}

/** What can be read only once: stdin, or a pipe by its name, as in `ev bulk <(zcat list.gz)`. Null for a file. */
function streamOf(context: Pick<CliContext, 'stdin'>, given: string): Readable | null {
  if (given === '-') return context.stdin
  if (given === '') throw new EvError('usage', 'The list has no name. Name a file, or - for stdin.')
  const status = statSync(given, { throwIfNoEntry: false })
  if (status === undefined || status.isFile()) return null
  if (status.isDirectory()) throw new EvError('no_input', `${given} is a folder, not a list.`)
  return createReadStream(given)
}

/** Hours may lie between one reading and the next: results must not come to stand beside other rows. */
async function* sameBytes(given: string, path: string, digest: string): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  try {
    for await (const chunk of createReadStream(path)) {
      hash.update(chunk)
      yield chunk
    }
  } catch (error) {
    throw unreadable(given, error)
  }
  if (hash.digest('hex') === digest) return
  throw new EvError(
    'bad_input',
    `The list ${given} was changed while ev was at work on it. Put the earlier file back, and the same command goes on; or give it again for the new one.`,
  )
}

function unreadable(given: string, cause: unknown): EvError {
  if (cause instanceof EvError) return cause
  return new EvError('no_input', `The list ${given} cannot be read: ${errorMessage(cause)}.`, {
    cause,
  })
}

/** `--column 3` is a number, `--column mail` a name. */
function dialectOptions({ column, encoding, header }: ListFileOptions) {
  return {
    ...(encoding === undefined ? {} : { encoding }),
    ...(column === undefined ? {} : { column: /^\d+$/.test(column) ? Number(column) : column }),
    ...(header === undefined ? {} : { header }),
  }
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

async function keepStream(given: string, stream: Readable, dataDir: string): Promise<string> {
  const dir = resolve(dataDir, 'stdin')
  const arriving = join(dir, `${process.pid}.partial`)
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    await pipeline(stream, createWriteStream(arriving, { mode: 0o600 }))
    // By its content, so that the same list piped in again is known again.
    const path = join(dir, `${(await digestOf(arriving)).slice(0, 32)}.csv`)
    await rename(arriving, path)
    return path
  } catch (error) {
    throw new EvError(
      'io',
      `The list from ${given === '-' ? 'stdin' : given} cannot be kept in ${dir}: ${errorMessage(error)}. Name another place with --data-dir.`,
      { cause: error },
    )
  }
}
