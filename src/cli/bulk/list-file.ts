import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, statSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { detectDialect, type ListDialect } from '../../csv/csv.ts'
import type { ListContent } from '../../formats/list-content.ts'
import { openContent, readContentHead } from '../../formats/open-content.ts'
import { createDirectory } from '../../platform/directory.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { omitUndefined } from '../../platform/omit-undefined.ts'
import type { CliContext } from '../context.ts'

/** A list on disk. It is read once for its addresses and once when the output is written. */
export type ListFile = {
  readonly path: string
  /** SHA-256 of the content, which identifies the list in later runs. */
  readonly digest: string
  readonly dialect: ListDialect
  /** Name of the sheet; null if the list is not a workbook. */
  readonly sheet: string | null
  /** Whether the file is a copy of stdin or of a URL in the data directory. */
  readonly kept: boolean
  /** File name of a list that was downloaded. */
  readonly name: string | undefined
  /**
   * Reads the content. Throws at the end if the content has changed since the list was opened; that
   * of a copy cannot.
   */
  bytes(): AsyncIterable<Uint8Array>
}

type ListFileOptions = {
  /** Name of the sheet of a workbook; the first visible one if left out. */
  readonly sheet?: string
  readonly column?: string
  readonly encoding?: string
  readonly header?: boolean
  readonly allAddresses?: boolean
  /** Whether the path is a copy of stdin or of a URL; detected if left out. */
  readonly kept?: boolean
  /** File name of a list that was downloaded. */
  readonly name?: string | undefined
  /** SHA-256 of the content, if it is known. */
  readonly digest?: string | undefined
}

/** The list is a file of the user: this stops only decompression bombs. */
const EXPANDED_BYTES_MAX = 16 * 1024 ** 3

/** A file with a list, and the SHA-256 of its content. */
type Input = ListCopy & {
  /** Whether the file is a copy of stdin or of a pipe in the data directory. */
  readonly isCopy: boolean
}

/**
 * Returns the file of a list. Input from stdin or a pipe is copied to the data directory, as it is
 * read twice.
 */
export async function openInput(
  context: Pick<CliContext, 'stdin'>,
  name: string,
  dataDir: string,
): Promise<Input> {
  try {
    const stream = streamOf(context, name)
    if (stream !== null) return { ...(await storeStream(name, stream, dataDir)), isCopy: true }
    const path = resolve(name)
    return { path, digest: await digestOf(path), isCopy: false }
  } catch (error) {
    throw unreadable(name, error)
  }
}

/** Opens a list. */
export async function openList(
  context: Pick<CliContext, 'stdin'>,
  name: string,
  dataDir: string,
  options: ListFileOptions,
): Promise<ListFile> {
  const input =
    options.digest === undefined
      ? await openInput(context, name, dataDir)
      : { path: resolve(name), digest: options.digest, isCopy: false }
  const { path, digest } = input
  const kept = options.kept ?? input.isCopy
  try {
    const content = await openContent(path, {
      sheet: options.sheet,
      expandedBytesMax: EXPANDED_BYTES_MAX,
    })
    const { head, complete } = await readContentHead(content)
    const known = { ...dialectOptions(options), ...content.known }
    return {
      path,
      digest,
      dialect: detectDialect(head, { ...known, complete }),
      sheet: content.workbook?.sheet ?? null,
      kept,
      name: options.name,
      bytes: () => readVerified(name, { path, digest: kept ? null : digest, content }),
    }
  } catch (error) {
    throw unreadable(name, error)
  }
}

/** Returns stdin or a named pipe, as in `ev bulk <(zcat list.gz)`; null for a regular file. */
function streamOf(context: Pick<CliContext, 'stdin'>, name: string): Readable | null {
  if (name === '-') return context.stdin
  if (name === '') throw new EvError('usage', 'The list has no name. Name a file, or - for stdin.')
  const status = statSync(name, { throwIfNoEntry: false })
  if (status === undefined || status.isFile()) return null
  if (status.isDirectory()) throw new EvError('no_input', `${name} is a folder, not a list.`)
  return createReadStream(name)
}

/**
 * Reads a file and throws at its end if its digest differs; null to check nothing. Hours may pass
 * between the two reads, and results must not be written next to other rows.
 */
async function* readVerified(
  name: string,
  { path, digest, content }: { path: string; digest: string | null; content: ListContent },
): AsyncGenerator<Uint8Array> {
  // The text of other formats is not the content of the file, which is read again for its digest.
  const hash = digest !== null && content.format === 'text' ? createHash('sha256') : null
  try {
    for await (const chunk of content.read()) {
      hash?.update(chunk)
      yield chunk
    }
  } catch (error) {
    // A file that was replaced or is being written can look damaged.
    if (digest !== null && hash === null && (await digestOf(path)) !== digest) throw changed(name)
    throw unreadable(name, error)
  }
  if (digest === null) return
  if ((hash?.digest('hex') ?? (await digestOf(path))) !== digest) throw changed(name)
}

const changed = (name: string) =>
  new EvError(
    'bad_input',
    `The list ${name} changed while ev was processing it. Restore the original file and run the command again to resume, or run it again now to start over with the new file.`,
  )

function unreadable(name: string, cause: unknown): EvError {
  if (cause instanceof EvError) return cause
  return new EvError('no_input', `The list ${name} cannot be read: ${errorMessage(cause)}.`, {
    cause,
  })
}

/** Converts flags to dialect options: `--column 3` is a position, `--column mail` a name. */
function dialectOptions({ column, encoding, header, allAddresses }: ListFileOptions) {
  const isNumber = column !== undefined && /^\d+$/.test(column)
  return omitUndefined({
    encoding,
    column: isNumber ? Number(column) : column,
    header,
    allAddresses,
  })
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

/** A copy of a list in the data directory, and the SHA-256 of its content. */
export type ListCopy = { readonly path: string; readonly digest: string }

/** Copies a list into the data directory. */
export async function storeStream(
  name: string,
  stream: Readable,
  dataDir: string,
): Promise<ListCopy> {
  const dir = resolve(dataDir, 'stdin')
  const arriving = join(dir, `${process.pid}.partial`)
  try {
    createDirectory(dir)
    const hash = createHash('sha256')
    const tap = new Transform({
      transform(chunk: Uint8Array, _, done) {
        hash.update(chunk)
        done(null, chunk)
      },
    })
    await pipeline(stream, tap, createWriteStream(arriving, { mode: 0o600 }))
    // Name the copy by its digest, so that piping in the same list again resumes its job.
    const digest = hash.digest('hex')
    const path = join(dir, `${digest.slice(0, 32)}.csv`)
    await rename(arriving, path)
    return { path, digest }
  } catch (error) {
    await rm(arriving, { force: true }).catch(() => {})
    if (error instanceof EvError) throw error
    throw new EvError(
      'io',
      `The list from ${name === '-' ? 'stdin' : name} cannot be stored in ${dir}: ${errorMessage(error)}. Set another directory with --data-dir.`,
      { cause: error },
    )
  }
}
