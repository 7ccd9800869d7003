import { Readable } from 'node:stream'
import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { addAuditEntry } from '../../audit.ts'
import {
  createRowObject,
  createRowWriter,
  type ListDialect,
  type OutputRow,
  type RowWriter,
} from '../../csv/csv.ts'
import { writeConcurrent } from '../../db/database.ts'
import { ACTIONS, type Action, type ActionPolicy } from '../../engine/verdict/action.ts'
import {
  LIST_COLUMNS,
  RESULT_COLUMNS,
  toListColumns,
  toResultColumns,
  WORD_COLUMNS,
} from '../../engine/verdict/present-result.ts'
import { CLASSES } from '../../engine/verdict/reason.ts'
import { createSheetWriter } from '../../formats/sheet-writer.ts'
import { zipSheet } from '../../formats/sheet-zip.ts'
import { VOCABULARIES, type Vocabulary } from '../../formats/vocabulary/names.ts'
import { getVocabularyColumns } from '../../formats/vocabulary/vocabulary.ts'
import {
  createFirstFilter,
  DEDUPLICATE_BY,
  type DeduplicateBy,
  type IsFirst,
} from '../../jobs/import/import-counter.ts'
import { getListName, type Job, parseOrigin } from '../../jobs/job-store.ts'
import { decideStored } from '../../jobs/results/result-store.ts'
import { limitByAccount } from '../account-share.ts'
import { type ActionPolicyDeps, getActionPolicy } from '../action-policy.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { invalidRequest, requestError } from '../errors/request-errors.ts'
import { flagQuery, namesQuery } from '../query.ts'
import { withOrigin } from '../request-context.ts'
import { newRouter, route } from '../route.ts'
import { DownloadRow } from '../schemas/job.ts'
import { type ChunkSource, textStream } from '../text-stream.ts'
import { attachment, downloadName } from './download-name.ts'
import { type JobRow, type RowsOptions, rowTexts } from './job-row.ts'
import { jobParams, type LoadJobDeps, loadJob } from './load-job.ts'
import { rowJson, rowValues } from './row-view.ts'

export type DownloadRouteDeps = Pick<ApiDeps, 'database' | 'guard' | 'log' | 'random'> &
  LoadJobDeps &
  ActionPolicyDeps

export const FORMATS = ['csv', 'xlsx', 'json', 'ndjson'] as const
type Format = (typeof FORMATS)[number]

/** The text parts of a download format. */
type DownloadText = {
  /** Written before the first row, even if there are no rows. */
  readonly begin: string
  readonly between: string
  readonly end: string
  /** See `RowFormat`. */
  readonly columns: number | null
  rows(rows: readonly JobRow[]): string[]
}

const WORKBOOK_TYPE = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  csv: 'text/csv; charset=utf-8',
  xlsx: WORKBOOK_TYPE,
  json: 'application/json',
  ndjson: 'application/x-ndjson',
}

type TextOptions = {
  /** Omits the guard against formulas, which only CSV has. */
  readonly raw: boolean
  readonly policy: ActionPolicy
  /** The service whose columns and words are written; those of ev if left out. Not for JSON. */
  readonly vocabulary?: Vocabulary | undefined
}

function downloadText(job: Job, format: Format, options: TextOptions): DownloadText {
  const { policy, vocabulary } = options
  const dialect = jobDialect(job)
  if (format === 'csv' || format === 'xlsx') {
    const words = vocabulary === undefined ? { words: WORD_COLUMNS } : {}
    const createWriter = (columns: ListDialect, added: readonly string[]): TableWriter =>
      format === 'csv'
        ? { ...createRowWriter(columns, added, { raw: options.raw, ...words }), end: '' }
        : createSheetWriter(columns, added)
    if (vocabulary !== undefined)
      return vocabularyTable(job, dialect ?? NO_COLUMNS, createWriter, vocabulary)
    return dialect === null
      ? listTable(job, createWriter, policy)
      : fileTable(job, dialect, createWriter, policy)
  }
  const input = dialect === null ? null : createRowObject(dialect)
  const toText = (row: JobRow) =>
    rowJson(row, row.cells === null ? null : (input?.(row.cells) ?? null), policy)
  return format === 'json'
    ? { begin: '[\n', between: ',\n', end: '\n]\n', columns: null, rows: rows => rows.map(toText) }
    : {
        begin: '',
        between: '',
        end: '',
        columns: null,
        rows: rows => rows.map(row => `${toText(row)}\n`),
      }
}

type TableWriter = RowWriter & { readonly end: string }

type CreateWriter = (dialect: ListDialect, added: readonly string[]) => TableWriter

/** The original columns unchanged, followed by the columns of the results. */
function fileTable(
  job: Job,
  dialect: ListDialect,
  createWriter: CreateWriter,
  policy: ActionPolicy,
): DownloadText {
  const previous = previousColumns(job)
  const added = previous.names.map(name => `ev_${name}`)
  const writer = createWriter(dialect, [...LIST_COLUMNS, ...added])
  const toOutputRow = (row: JobRow): OutputRow => ({
    cells: row.cells ?? [],
    values: [...toListColumns(rowValues(row, policy)), ...previous.values(row)],
  })
  const rows = (rows: readonly JobRow[]) => writer.rows(rows.map(toOutputRow))
  return { begin: writer.header(), between: '', end: writer.end, columns: dialect.width, rows }
}

/** CSV as in RFC 4180. If addresses were submitted with IDs, the last column has them. */
function listTable(job: Job, createWriter: CreateWriter, policy: ActionPolicy): DownloadText {
  const hasIds = parseSource(job).ids === true
  const previous = previousColumns(job)
  const columns = [...RESULT_COLUMNS, ...previous.names, ...(hasIds ? ['id'] : [])]
  const writer = createWriter(NO_COLUMNS, columns)
  const toOutputRow = (row: JobRow): OutputRow => ({
    cells: [],
    values: [
      ...toResultColumns(rowValues(row, policy)),
      ...previous.values(row),
      ...(hasIds ? [row.id] : []),
    ],
  })
  const rows = (rows: readonly JobRow[]) => writer.rows(rows.map(toOutputRow))
  return { begin: writer.header(), between: '', end: writer.end, columns: 0, rows }
}

/** The original columns, followed by those of another service, and the submitted ID. */
function vocabularyTable(
  job: Job,
  dialect: ListDialect,
  createWriter: CreateWriter,
  vocabulary: Vocabulary,
): DownloadText {
  const hasIds = parseSource(job).ids === true
  const columns = getVocabularyColumns(vocabulary, dialect)
  const writer = createWriter(dialect, [...columns.names, ...(hasIds ? ['id'] : [])])
  const toOutputRow = (row: JobRow): OutputRow => ({
    cells: row.cells ?? [],
    values: [
      ...columns.values({ email: row.result?.email ?? '', class: row.class, result: row.result }),
      ...(hasIds ? [row.id] : []),
    ],
  })
  const rows = (rows: readonly JobRow[]) => writer.rows(rows.map(toOutputRow))
  return { begin: writer.header(), between: '', end: writer.end, columns: dialect.width, rows }
}

/** The columns of a job that verifies a list again; empty in rows that kept their result. */
function previousColumns(job: Job) {
  if (parseOrigin(job).previousJobId === null) return { names: [], values: () => [] }
  return {
    names: ['previous_class', 'previous_reason'],
    values: ({ previous }: JobRow) => [previous?.class ?? null, previous?.reason ?? null],
  }
}

export const NO_COLUMNS: ListDialect = {
  encoding: 'utf-8',
  delimiter: ',',
  newline: '\r\n',
  bom: false,
  header: [],
  column: 0,
  columnName: null,
  skipLines: 0,
  width: 0,
}

/**
 * The CSV dialect of a download; null if the list was not a file. Downloads are UTF-8. That of a list
 * in another encoding has a byte order mark, without which Excel reads it in the encoding of the
 * system, such as that of the list.
 */
function jobDialect(job: Job): ListDialect | null {
  const dialect = parseSource(job).dialect ?? null
  return dialect === null ? null : { ...dialect, bom: dialect.bom || dialect.encoding !== 'utf-8' }
}

type Source = {
  readonly dialect?: ListDialect | null
  readonly ids?: boolean
}

const parseSource = ({ source }: Job): Source => JSON.parse(source) as Source

/** Routes that download the results of a job as a file. */
export function downloadRoutes(service: DownloadRouteDeps) {
  const options = {
    description:
      "Returns a file named after the list and the classes or actions, such as `customers-deliverable.csv`. For an uploaded file, the original columns come first, unchanged, followed by the result columns with the prefix `ev_`, starting with the class. Otherwise, CSV has the columns of `results`. `valid` is empty if the class is `unknown`. XLSX has the same columns, as text and numbers, never as formulas. In CSV, a cell that a spreadsheet would run as a formula starts with `'`. A re-verification also has the columns `previous_class` and `previous_reason`, which are empty in rows that kept their result.",
    scope: 'jobs:read',
    params: jobParams,
    query,
    answer: FILE,
    headers: ['Content-Disposition'],
    errors: ['job_not_ready'],
  } as const
  const bulk = route(service, 'GET /v1/verify/bulk/download/{id}', {
    ...options,
    id: 'downloadBulk',
    summary: 'Download the results of a list',
  })
  const job = route(service, 'GET /v1/jobs/{id}/download', {
    ...options,
    query: query.extend(linkQuery),
    takesLinks: true,
    id: 'downloadJob',
    summary: 'Download the results of a job',
  })
  const admit = limitByAccount({
    max: DOWNLOADS_MAX,
    accountMax: ACCOUNT_DOWNLOADS_MAX,
    what: 'downloads are in progress',
    retryAfterS: RETRY_S,
  })
  const admitDeduplicated = limitByAccount({
    max: DEDUPLICATED_MAX,
    accountMax: ACCOUNT_DEDUPLICATED_MAX,
    what: 'large downloads with "deduplicate" are in progress',
    retryAfterS: RETRY_S,
  })
  const services: DownloadDeps = {
    ...service,
    admit(accountId, isLargeIndex) {
      const release = admit(accountId)
      if (!isLargeIndex) return release
      try {
        const releaseIndex = admitDeduplicated(accountId)
        return () => {
          releaseIndex()
          release()
        }
      } catch (error) {
        release()
        throw error
      }
    },
  }
  return newRouter()
    .handle(bulk, c => download(c, services, c.req.valid('param').id, c.req.valid('query')))
    .handle(job, c => download(c, services, c.req.valid('param').id, c.req.valid('query')))
}

/**
 * Downloads in progress, over all accounts and of one account. Each holds a page of text while its
 * reader is slow, which has a megabyte if the rows of the list have one.
 */
const DOWNLOADS_MAX = 100
const ACCOUNT_DOWNLOADS_MAX = 20
/**
 * Downloads that find repeated rows of long lists, over all accounts and of one account: a million
 * rows take 50 MB until the end of the download.
 */
const DEDUPLICATED_MAX = 6
const ACCOUNT_DEDUPLICATED_MAX = 2
/** Rows up to which a download with `deduplicate` counts as any other: they take 5 MB. */
const DEDUPLICATED_ROWS_FREE = 100_000
/** Most downloads end within seconds. */
const RETRY_S = 5

type DownloadDeps = DownloadRouteDeps & {
  /**
   * Admits a download of an account, and returns the function that ends it. `isLargeIndex` if it
   * finds the repeated rows of a long list.
   */
  readonly admit: (accountId: string, isLargeIndex: boolean) => () => void
}

export const DEDUPLICATE =
  'Set to true or `address` to get each address once, or to `canonical` to get each mailbox once. Of rows with the same address, the first that matches the filter is returned.'

const toDeduplicateBy = (value: string | undefined): DeduplicateBy | null => {
  if (value === '1' || value === 'true') return 'address'
  return DEDUPLICATE_BY.find(by => by === value) ?? null
}

export const VocabularySchema = z.enum(VOCABULARIES).openapi('Vocabulary', {
  example: 'zerobounce',
  description:
    'Another service whose columns and words are written in place of those of ev, for programs that read its exports. Only for `csv` and `xlsx`.',
})

const query = z.object({
  format: z.enum(FORMATS).default('csv').openapi({ description: 'File format.' }),
  filter: namesQuery(CLASSES, {
    description: 'Only rows of these classes',
    example: 'deliverable,risky',
  }),
  action: namesQuery(ACTIONS, {
    description: 'Only rows with these actions, by the action policy of the account',
    example: 'send,send_with_care',
  }),
  raw: flagQuery(
    'Set to true to leave cells unchanged, for programs. A spreadsheet can run some of them as formulas.',
  ),
  deduplicate: z
    .enum(['1', '0', 'true', 'false', ...DEDUPLICATE_BY])
    .optional()
    .transform(toDeduplicateBy)
    .openapi({
      type: 'string',
      enum: ['true', 'false', '1', '0', ...DEDUPLICATE_BY],
      description: DEDUPLICATE,
    }),
  vocabulary: VocabularySchema.optional(),
  partial: flagQuery("Set to true to get the results so far of a job that isn't completed."),
})

/** An ID has 24 characters, a signature 64. */
const linkPart = z.string().max(100).optional()

/** The parameters of a signed link. */
const linkQuery = {
  key_id: linkPart.openapi({
    description: 'Part of a signed URL: see `POST /v1/jobs/{id}/download_url`.',
  }),
  expires: linkPart.openapi({ description: 'Part of a signed URL: when it expires.' }),
  signature: linkPart.openapi({ description: 'Part of a signed URL: always the last parameter.' }),
}

const FILE = {
  description: 'The results in the order of the list',
  content: {
    'text/csv': {
      schema: z.string(),
      example:
        'email,valid,deliverable,risk_level,reason,cached,class,…\r\nuser@example.com,true,true,low,accepted_email,false,deliverable,…\r\n',
    },
    [WORKBOOK_TYPE]: { schema: z.string().openapi({ format: 'binary' }) },
    'application/json': { schema: z.array(DownloadRow) },
    'application/x-ndjson': { schema: z.string() },
  },
}

type Query = z.output<typeof query>

async function download(
  c: Context<Env>,
  service: DownloadDeps,
  id: string,
  { partial, ...options }: Query,
): Promise<Response> {
  checkVocabulary(options)
  const job = await loadJob(c, service, id)
  if (job.state !== 'completed' && !partial) {
    throw requestError('results_incomplete', { state: job.state, partial: 'Add ?partial=true' })
  }
  if (c.req.method === 'HEAD') return fileResponse(c, service, job, options)
  const isLargeIndex = options.deduplicate !== null && job.total > DEDUPLICATED_ROWS_FREE
  const release = service.admit(c.get('caller').account.id, isLargeIndex)
  try {
    await auditDownload(c, service, job)
    return fileResponse(c, service, job, { ...options, release })
  } catch (error) {
    release()
    throw error
  }
}

type FileOptions = Omit<Query, 'partial'> & {
  /** Called at the end of the response, complete or not. */
  readonly release?: () => void
}

function fileResponse(
  c: Context<Env>,
  service: DownloadDeps,
  job: Job,
  { format, filter, action, raw, deduplicate, vocabulary, release = () => {} }: FileOptions,
): Response {
  const policy = getActionPolicy(c, service)
  const text = downloadText(job, format, { raw, policy, vocabulary })
  const isFirst = deduplicate === null ? null : createFirstFilter(deduplicate, service.random)
  const classes = filter?.length === CLASSES.length ? undefined : filter
  const actions = action?.length === ACTIONS.length ? undefined : action
  const hasAction = actions === undefined ? null : (row: JobRow) => isDecided(row, actions, policy)
  const selection = { classes, hasAction, isFirst }
  const source = encodeChunks(format, fileChunks(service, job, text, selection))
  const chunks: ChunkSource = {
    next: () => source.next(),
    return(value) {
      release()
      return source.return(value)
    },
  }
  const name = downloadName({
    id: job.id,
    listName: getListName(job),
    names: [...(classes ?? []), ...(actions ?? [])],
    isPartial: job.state !== 'completed',
    extension: format,
  })
  return c.body(textStream(c, service, chunks), 200, {
    'Content-Type': CONTENT_TYPES[format],
    'Content-Disposition': attachment(name),
  })
}

/** Throws ApiError if the format has no columns, which a vocabulary needs. */
export function checkVocabulary({
  vocabulary,
  format,
}: {
  readonly vocabulary?: Vocabulary | undefined
  readonly format: Format
}): void {
  if (vocabulary === undefined || format === 'csv' || format === 'xlsx') return
  throw invalidRequest(
    `"vocabulary" sets the columns of csv and xlsx, but "format" is "${format}". Set another format, or omit "vocabulary".`,
  )
}

const isDecided = (
  { result, class: klass }: JobRow,
  actions: readonly Action[],
  policy: ActionPolicy,
) => actions.includes(decideStored(result, klass, policy).action)

/** Records a download before it starts: from then on, data leaves the service. */
async function auditDownload(c: Context<Env>, service: DownloadRouteDeps, job: Job): Promise<void> {
  const services = withOrigin(c, service)
  const target = { id: job.id, name: getListName(job) }
  const accountId = c.get('caller').account.id
  const entry = { action: 'results.downloaded', accountId, target } as const
  await writeConcurrent(service.database, trx => addAuditEntry(trx, services, entry))
}

/** The rows of a worksheet become the bytes of a workbook as they are read. */
function encodeChunks(format: Format, chunks: AsyncGenerator<string>): ChunkSource {
  if (format !== 'xlsx') return chunks
  // Holds no more than one chunk ahead of the reader.
  const output = zipSheet(Readable.from(chunks, { highWaterMark: 1 }))
  const iterator = output[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  return {
    next: () => iterator.next(),
    return: async () => output.destroy(),
  }
}

type Selection = RowsOptions & {
  /** Whether a row has one of the actions; null to keep all. */
  readonly hasAction: ((row: JobRow) => boolean) | null
  /** Selects the rows of the file; null to keep all. */
  readonly isFirst: IsFirst | null
}

async function* fileChunks(
  { database }: DownloadRouteDeps,
  job: Job,
  text: DownloadText,
  { classes, hasAction, isFirst }: Selection,
): AsyncGenerator<string> {
  let before = text.begin
  const present = (all: readonly JobRow[]) => {
    const rows = hasAction === null ? all : all.filter(hasAction)
    return text.rows(isFirst === null ? rows : rows.filter(isFirst))
  }
  const format = { present, columns: text.columns }
  for await (const rows of rowTexts(database, job, { classes }, format)) {
    yield before + rows.join(text.between)
    before = text.between
  }
  const end = before === text.begin ? text.begin + text.end : text.end
  if (end !== '') yield end
}
