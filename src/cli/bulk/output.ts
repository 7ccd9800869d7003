import { type ListDialect, type ListRow, readList } from '../../csv/csv.ts'
import type { TextEncoding } from '../../csv/encoder.ts'
import type { Database } from '../../db/database.ts'
import { getActionCase } from '../../engine/verdict/action.ts'
import type { Reason } from '../../engine/verdict/reason.ts'
import { decodeResult } from '../../engine/verdict/stored-result.ts'
import { type Class, type Result, toClass } from '../../engine/verdict/verdict.ts'
import { ResultCounter, type ResultGroup } from '../../feedback/projection.ts'
import type { IsFirst } from '../../jobs/import/import-counter.ts'
import { resultPage } from '../../jobs/results/result-store.ts'
import { EvError } from '../../platform/error.ts'
import type { CliContext } from '../context.ts'
import { encodeSink, UnknownCharacter } from './encoded-sink.ts'
import type { ListFile } from './list-file.ts'
import type { OutputFile } from './output-plan.ts'
import { type OutputSink, openSink, publishAll, resolveOutput } from './output-sink.ts'
import type { Format, RowResult, RowText } from './row-text.ts'

/** A file of the output and the number of rows written to it. */
export type WrittenFile = OutputFile & { readonly rows: number }

/** Counts of all rows of a list, including those that are not written. */
export type ResultCounts = {
  readonly reasons: Readonly<Record<Class, ReadonlyMap<Reason, number>>>
  /** Rows with a suggested correction. */
  readonly suggestions: number
  /** All rows by case and operator. */
  readonly groups: readonly ResultGroup[]
  /** The rows of the output. */
  readonly writtenGroups: readonly ResultGroup[]
}

export type WrittenOutput = {
  readonly files: readonly WrittenFile[]
  readonly counts: ResultCounts
  /** The encoding of the files: a label of the WHATWG Encoding Standard. */
  readonly encoding: string
}

type Source = { readonly database: Database; readonly jobId: string }

type OutputOptions = {
  /** Returns the format of the rows; one for each file, because a worksheet numbers its rows. */
  readonly createText: (dialect: ListDialect) => RowText
  readonly format?: Format | undefined
  /** Creates the filter of the rows that are written; null to write all. */
  readonly createFilter?: (() => IsFirst) | null
  /** Whether a row is written by its action; null to write all. */
  readonly hasAction?: ((result: Result) => boolean) | null
  /** Aborts the output and removes partial files. */
  readonly stopping?: AbortSignal | undefined
  /** Called with each result, including those that are not written. */
  readonly onResult?: (result: Result) => void
}

/**
 * Writes the rows of the list with their results, in the order of the list, each to the file of its
 * class. The files get their final names only after all of them are complete.
 *
 * CSV keeps the encoding of the list, which is the one that the user's programs expect. If a
 * character does not exist there, all files are UTF-8 with a byte order mark, without which Excel
 * reads them in the encoding of the system.
 */
export async function writeOutput(
  context: Pick<CliContext, 'stdout'>,
  files: readonly OutputFile[],
  list: ListFile,
  source: Source,
  options: OutputOptions,
): Promise<WrittenOutput> {
  const { dialect } = list
  const encode = await findTextEncoding(files, dialect, options.format)
  const write = async (form: TextForm, encoding: ListDialect['encoding']) => ({
    ...(await writeFiles(context, files, list, source, options, form)),
    encoding,
  })
  if (encode === null) return write({ dialect, encode }, 'utf-8')
  try {
    return await write({ dialect, encode }, dialect.encoding)
  } catch (error) {
    if (!(error instanceof UnknownCharacter)) throw error
    return write({ dialect: { ...dialect, bom: true }, encode: null }, 'utf-8')
  }
}

/**
 * Returns the encoding of the list; null for UTF-8, for JSON and workbooks, which are always UTF-8
 * (RFC 8259 §8.1), and for pipes, whose output cannot be replaced if a character does not exist.
 */
async function findTextEncoding(
  files: readonly OutputFile[],
  { encoding }: ListDialect,
  format: Format = 'csv',
): Promise<TextEncoding | null> {
  if (format !== 'csv' || encoding === 'utf-8') return null
  if (!files.every(({ path }) => path !== '-' && resolveOutput(path).isFile)) return null
  const { createTextEncoding } = await import('../../csv/encoder.ts')
  return createTextEncoding(encoding)
}

/** How text becomes bytes: the dialect, and the encoding if it is not UTF-8. */
type TextForm = { readonly dialect: ListDialect; readonly encode: TextEncoding | null }

async function writeFiles(
  context: Pick<CliContext, 'stdout'>,
  files: readonly OutputFile[],
  list: ListFile,
  source: Source,
  options: OutputOptions,
  { dialect, encode }: TextForm,
): Promise<Omit<WrittenOutput, 'encoding'>> {
  const { createText, format } = options
  const writers: FileWriter[] = []
  try {
    for (const { path, classes } of files) {
      const text = createText(dialect)
      const sink = await encodeSink(await openSink(context, path), { path, format, encode })
      writers.push(new FileWriter({ path, classes }, sink, text))
    }
    const counts = await writeRows(writers, list, source, options)
    for (const writer of writers) await writer.close()
    await publishAll(writers.map(writer => writer.sink))
    return { files: writers.map(({ file, rows }) => ({ ...file, rows })), counts }
  } catch (error) {
    for (const writer of writers) await writer.sink.discard()
    throw error
  }
}

async function writeRows(
  writers: readonly FileWriter[],
  list: ListFile,
  source: Source,
  { createFilter = null, hasAction = null, stopping, onResult }: OutputOptions,
): Promise<ResultCounts> {
  const isFirst = createFilter?.() ?? null
  const writerByClass = new Map<Class, FileWriter>()
  for (const writer of writers) {
    for (const klass of writer.file.classes) writerByClass.set(klass, writer)
  }
  const reasons = {
    deliverable: new Map<Reason, number>(),
    risky: new Map<Reason, number>(),
    undeliverable: new Map<Reason, number>(),
    unknown: new Map<Reason, number>(),
  }
  let suggestions = 0
  const [all, written] = [new ResultCounter(), new ResultCounter()]
  let after = 0
  for await (const batch of readList(list.bytes(), list.dialect)) {
    if (stopping?.aborted) throw stopped()
    const page = await resultPage(source.database, {
      jobId: source.jobId,
      after,
      max: batch.length,
    })
    for (const [index, row] of batch.entries()) {
      const stored = page[index]
      const result = stored?.result == null ? null : decodeResult(stored.result)
      if (stored === undefined || result === null) throw await missingResult(row, list)
      onResult?.(result)
      const { verdict, evidence } = result
      const ofClass = reasons[toClass(verdict)]
      ofClass.set(verdict.reason, (ofClass.get(verdict.reason) ?? 0) + 1)
      if (evidence.suggestion !== null) suggestions++
      const which = getActionCase(result)
      const operator = evidence.operator?.name ?? null
      all.add(which, operator, 1)
      if (hasAction !== null && !hasAction(result)) continue
      if (isFirst !== null && !isFirst(stored)) continue
      const writer = writerByClass.get(toClass(verdict))
      if (writer === undefined) continue
      written.add(which, operator, 1)
      writer.add({ row, result })
    }
    after += batch.length
    for (const writer of writers) await writer.flush()
  }
  return { reasons, suggestions, groups: all.groups(), writtenGroups: written.groups() }
}

const stopped = () =>
  new EvError(
    'interrupted',
    'Stopped before the output was complete, so no output was written. All results are saved: run the same command again to write them.',
  )

/** Reads the list to its end, which throws a clearer error if rows were added to the file. */
async function missingResult({ row }: ListRow, list: ListFile): Promise<EvError> {
  for await (const _ of list.bytes());
  return new EvError('internal', `Row ${row} of the list has no result.`)
}

/** Buffers the rows of one file and writes them in batches. */
class FileWriter {
  readonly file: OutputFile
  readonly sink: OutputSink
  rows = 0
  readonly #format: RowText
  readonly #pending: RowResult[] = []
  #text: string

  constructor(file: OutputFile, sink: OutputSink, format: RowText) {
    this.file = file
    this.sink = sink
    this.#format = format
    this.#text = format.begin
  }

  add(row: RowResult) {
    this.#pending.push(row)
  }

  async flush(): Promise<void> {
    const { between } = this.#format
    const texts = this.#format.rows(this.#pending.splice(0))
    if (texts.length > 0) this.#text += (this.rows > 0 ? between : '') + texts.join(between)
    this.rows += texts.length
    const text = this.#text
    this.#text = ''
    if (text !== '') await this.sink.write(text)
  }

  async close(): Promise<void> {
    this.#text += this.#format.end
    await this.flush()
    await this.sink.close()
  }
}
