import { type ListRow, readList } from '../../csv/csv.ts'
import type { Database } from '../../db/database.ts'
import { type Class, type Result, toClass } from '../../engine/verdict/verdict.ts'
import { resultPage } from '../../jobs/results/result-store.ts'
import { EvError } from '../../platform/error.ts'
import type { CliContext } from '../context.ts'
import type { ListFile } from './list-file.ts'
import type { OutputFile } from './output-plan.ts'
import { type OutputSink, openSink, publishAll } from './output-sink.ts'
import type { RowText } from './row-text.ts'

/** A file of the output, and how many rows went there. */
export type WrittenFile = OutputFile & { readonly rows: number }

type Source = { readonly database: Database; readonly jobId: string }

export type OutputOptions = {
  readonly text: RowText
  /** Nothing more is written, and what was is taken away. */
  readonly stopping?: AbortSignal | undefined
  /** Sees each result, also those that are not written. */
  readonly onResult?: (result: Result) => void
}

/**
 * Writes the rows of the list with their results, in the order of the list, each to the file of its
 * class. The files appear whole under their names, all of them, or not at all.
 */
export async function writeOutput(
  context: Pick<CliContext, 'stdout'>,
  files: readonly OutputFile[],
  list: ListFile,
  source: Source,
  options: OutputOptions,
): Promise<WrittenFile[]> {
  const { text } = options
  const pens: Pen[] = []
  try {
    for (const file of files) pens.push(new Pen(file, await openSink(context, file.path), text))
    await writeRows(pens, list, source, options)
    for (const pen of pens) await pen.close()
    await publishAll(pens.map(pen => pen.sink))
  } catch (error) {
    for (const pen of pens) await pen.sink.discard()
    throw error
  }
  return pens.map(({ file, rows }) => ({ ...file, rows }))
}

async function writeRows(
  pens: readonly Pen[],
  list: ListFile,
  source: Source,
  { stopping, onResult }: OutputOptions,
): Promise<void> {
  const penOf = new Map<Class, Pen>()
  for (const pen of pens) for (const klass of pen.file.classes) penOf.set(klass, pen)
  let after = 0
  for await (const batch of readList(list.bytes(), list.dialect)) {
    if (stopping?.aborted) throw stopped()
    const page = await resultPage(source.database, {
      jobId: source.jobId,
      after,
      max: batch.length,
    })
    for (const [index, row] of batch.entries()) {
      const json = page[index]?.result
      if (json == null) throw await withoutResult(row, list)
      const result = JSON.parse(json) as Result
      onResult?.(result)
      penOf.get(toClass(result.verdict))?.add(row, result)
    }
    after += batch.length
    for (const pen of pens) await pen.flush()
  }
}

const stopped = () =>
  new EvError(
    'interrupted',
    'Stopped while the output was being written, so there is none. All results are kept: the same command writes them.',
  )

/** Rows that came to the list behind its back have none; that is said by reading it to its end. */
async function withoutResult({ row }: ListRow, list: ListFile): Promise<EvError> {
  for await (const _ of list.bytes());
  return new EvError('internal', `Row ${row} of the list has no result.`)
}

/** Gathers the rows of one file and hands them over together. */
class Pen {
  readonly file: OutputFile
  readonly sink: OutputSink
  rows = 0
  readonly #format: RowText
  #text: string

  constructor(file: OutputFile, sink: OutputSink, format: RowText) {
    this.file = file
    this.sink = sink
    this.#format = format
    this.#text = format.begin
  }

  add(row: ListRow, result: Result) {
    if (this.rows > 0) this.#text += this.#format.between
    this.#text += this.#format.row(row, result)
    this.rows += 1
  }

  async flush(): Promise<void> {
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
