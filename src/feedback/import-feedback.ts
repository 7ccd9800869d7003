import { detectColumns, HEAD_BYTES_MAX, readList } from '../csv/csv.ts'
import { parseJsonText } from '../platform/json-reader.ts'
import type { FeedbackInput, FeedbackKind } from './feedback.ts'
import { findFields, toFeedbackInput } from './formats/fields.ts'
import { readLines, splitMbox } from './formats/mbox.ts'
import { MESSAGE_BYTES_MAX, parseReportMessage } from './formats/report-message.ts'

type FeedbackFormat = 'csv' | 'ndjson' | 'mbox' | 'message'

type ReadOptions = {
  /** For the time of feedback without one. */
  readonly now: number
  /** For rows without a kind, as in an export of bounces; null to leave them out. */
  readonly kind: FeedbackKind | null
}

/** A batch of feedback, and how many rows or messages were none. */
export type FeedbackBatch = { readonly items: readonly FeedbackInput[]; readonly ignored: number }

/** Rows of a batch. */
const BATCH_MAX = 500

/** Reads feedback from a file or a stream, in a format that its first bytes show. */
export async function* readFeedback(
  source: AsyncIterable<Uint8Array>,
  options: ReadOptions,
): AsyncGenerator<FeedbackBatch> {
  const { head, all } = await peek(source, HEAD_BYTES_MAX)
  if (head.length === 0) return
  switch (detectFormat(head)) {
    case 'csv':
      return yield* readCsv(head, all, options)
    case 'ndjson':
      return yield* readNdjson(all, options)
    case 'mbox':
      for await (const message of splitMbox(all)) yield await readMessage(message, options)
      return
    case 'message':
      yield await readMessage(await readHead(all), options)
  }
}

/** Detects the format by the first bytes. */
export function detectFormat(head: Uint8Array): FeedbackFormat {
  const text = Buffer.from(head.subarray(0, 4_096)).toString('latin1').replace(/^ï»¿/, '')
  if (/^From \S/.test(text)) return 'mbox'
  if (/^\s*\{/.test(text)) return 'ndjson'
  return HEADER_FIELDS.test(text) && MAIL_FIELD.test(text) ? 'message' : 'csv'
}

/** Two header fields, each on its line (RFC 5322 §2.2). */
const HEADER_FIELDS = /^[!-9;-~]{1,100}:[^\n]{0,2000}\n(?:[!-9;-~]{1,100}:|[ \t])/
const MAIL_FIELD =
  /^(?:received|return-path|from|to|date|subject|mime-version|content-type|message-id|delivered-to):/im

async function readMessage(message: Uint8Array, { now }: ReadOptions): Promise<FeedbackBatch> {
  const items = await parseReportMessage(message, now)
  return { items, ignored: items.length === 0 ? 1 : 0 }
}

async function* readCsv(
  head: Uint8Array,
  all: AsyncIterable<Uint8Array>,
  { kind }: ReadOptions,
): AsyncGenerator<FeedbackBatch> {
  const { dialect, isFound } = detectColumns(head, { complete: head.length < HEAD_BYTES_MAX })
  const fields = findFields(dialect.header ?? [])
  for await (const rows of readList(all, { ...dialect, countsBlankRows: false })) {
    yield toBatch(
      rows.map(({ cells, text }) =>
        toFeedbackInput({ fields, values: cells, ...(isFound ? { address: text } : {}) }, kind),
      ),
    )
  }
}

async function* readNdjson(
  all: AsyncIterable<Uint8Array>,
  { kind }: ReadOptions,
): AsyncGenerator<FeedbackBatch> {
  let batch: (FeedbackInput | null)[] = []
  for await (const line of readLines(all)) {
    if (line.trim() === '') continue
    batch.push(parseJsonLine(line, kind))
    if (batch.length < BATCH_MAX) continue
    yield toBatch(batch)
    batch = []
  }
  if (batch.length > 0) yield toBatch(batch)
}

/** An event has some dozens of fields, of which only texts and numbers count. */
const LINE_LIMITS = {
  depthMax: 16,
  fieldsMax: 1_000,
  valuesMax: 5_000,
  tokenBytesMax: 256 * 1024,
} as const

function parseJsonLine(line: string, kind: FeedbackKind | null): FeedbackInput | null {
  try {
    const value = parseJsonText(Buffer.from(line, 'latin1').toString('utf8'), LINE_LIMITS)
    if (typeof value !== 'object' || value === null) return null
    const pairs = Object.entries(value).filter(([, field]) =>
      /^(?:string|number)$/.test(typeof field),
    )
    const values = pairs.map(([, field]) => String(field))
    return toFeedbackInput({ fields: findFields(pairs.map(([name]) => name)), values }, kind)
  } catch {
    return null
  }
}

function toBatch(rows: readonly (FeedbackInput | null)[]): FeedbackBatch {
  const items = rows.filter(row => row !== null)
  return { items, ignored: rows.length - items.length }
}

/** Reads the first bytes, and returns them with an iterator over all bytes. */
async function peek(source: AsyncIterable<Uint8Array>, size: number) {
  const iterator = source[Symbol.asyncIterator]()
  const chunks: Uint8Array[] = []
  let length = 0
  while (length < size) {
    const next = await iterator.next()
    if (next.done === true) break
    chunks.push(next.value)
    length += next.value.length
  }
  async function* all() {
    yield* chunks
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  return { head: Buffer.concat(chunks).subarray(0, size), all: all() }
}

/** Reads a message up to the limit of what is parsed. */
async function readHead(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of source) {
    chunks.push(chunk)
    length += chunk.length
    if (length > MESSAGE_BYTES_MAX) break
  }
  return Buffer.concat(chunks)
}
