import type { Context } from 'hono'
import type { ListDialect, ListRow } from '../../csv/csv.ts'
import type { ExternalResult } from '../../engine/verdict/external.ts'
import { findExternalSource } from '../../jobs/import/external-results.ts'
import { countImportedRows, type ImportCounter } from '../../jobs/import/import-counter.ts'
import { estimatedTime } from '../../jobs/waits/estimate.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { ApiDeps } from '../api-deps.ts'
import { clientAborted, type Env } from '../context.ts'
import { requestError } from '../errors/request-errors.ts'
import { creditState, type RateLimitDeps } from '../middleware/rate-limit.ts'
import {
  type ExternalOptions,
  findColumns,
  presentAddressColumns,
  readExternalOptions,
  readRows,
} from './batch.ts'
import { type QueueDeps, readListOptions } from './queue.ts'
import type { TextUpload } from './upload.ts'

export type DryRunDeps = Pick<ApiDeps, 'engine' | 'random'> & RateLimitDeps & QueueDeps

/**
 * `POST /v1/verify/file` and `url` with `dry_run`: reads and counts a file like a submitted one, but
 * stores, charges and probes nothing. If the address column is not found, the response lists the columns.
 */
export async function dryRun(
  c: Context<Env>,
  service: DryRunDeps,
  upload: TextUpload,
): Promise<Response> {
  const { path, options, content } = upload
  // Invalid options are refused as for a submitted list.
  const deduplicate = options.deduplicate ?? true
  const { checkSmtp } = await readListOptions(c, service, options)
  const { dialect, isFound } = await findColumns(upload)
  const preview = await readPreview(path, dialect)
  if (preview.length === 0)
    throw requestError('no_address_given', { what: 'The list has no rows.' })
  const { signal } = c.req.raw
  const counting = { deduplicate, random: service.random, signal }
  const external = readExternalOptions(service, dialect, options)
  const tally = isFound
    ? await countImportedRows(withExternal(readRows(path, dialect), external), counting)
    : null
  if (signal.aborted) throw clientAborted()
  return c.json({
    success: true,
    dry_run: true,
    columns: presentColumns(dialect),
    column: isFound ? excerpt(dialect.columnName ?? '') || null : null,
    column_number: isFound ? dialect.column + 1 : null,
    header: dialect.header !== null,
    encoding: dialect.encoding,
    delimiter: dialect.delimiter,
    format: content.format,
    sheet: content.workbook && excerpt(content.workbook.sheet),
    sheets: content.workbook?.sheets.slice(0, SHEETS_MAX).map(excerpt) ?? [],
    ...presentAddressColumns(dialect),
    external_source: findExternalSource(dialect),
    kept_external: external.reader?.usable ?? 0,
    ...presentCounts(tally),
    credits_needed: c.get('sandbox') ? 0 : (tally?.addressCount ?? null),
    credits_balance: (await creditState(service, c.get('caller')))?.remaining ?? null,
    estimated_time:
      tally &&
      (await estimatedTime(service, {
        jobId: null,
        domains: tally.domains,
        sandbox: c.get('sandbox'),
        checkSmtp,
      })),
    preview,
  })
}

async function* withExternal(
  batches: AsyncIterable<readonly ListRow[]>,
  { reader }: ExternalOptions,
): AsyncGenerator<readonly { readonly text: string; readonly external: ExternalResult | null }[]> {
  for await (const batch of batches) {
    yield batch.map(({ text, cells }) => ({ text, external: reader?.read(cells) ?? null }))
  }
}

const PREVIEW_ROWS = 5
/** Columns of the preview. A file can have a hundred thousand. */
const COLUMNS_MAX = 200
/** Sheets of a workbook in the response. */
const SHEETS_MAX = 200
/** Enough of a name or cell to recognize it. */
const CELL_LENGTH_MAX = 80

/** Reads the first rows and stops. */
async function readPreview(path: string, dialect: ListDialect): Promise<string[][]> {
  const rows: string[][] = []
  for await (const batch of readRows(path, dialect)) {
    for (const { cells } of batch) {
      if (rows.length < PREVIEW_ROWS) rows.push(cells.slice(0, COLUMNS_MAX).map(excerpt))
    }
    if (rows.length === PREVIEW_ROWS) break
  }
  return rows
}

const excerpt = (cell: string) => sanitizeText(cell, CELL_LENGTH_MAX)

/** Always includes the address column, even if it is beyond `COLUMNS_MAX`. */
function presentColumns({ header, width, column }: ListDialect) {
  const numbers = Array.from({ length: Math.min(width, COLUMNS_MAX) }, (_, at) => at + 1)
  if (column >= numbers.length) numbers.push(column + 1)
  return numbers.map(number => ({ number, name: excerpt(header?.[number - 1] ?? '') || null }))
}

function presentCounts(tally: ImportCounter | null) {
  return {
    rows: tally?.total ?? null,
    total_emails: tally?.total ?? null,
    valid_emails: tally === null ? null : tally.total - tally.malformed - tally.noAddress,
    invalid_format_emails: tally?.malformed ?? null,
    no_address: tally?.noAddress ?? null,
    duplicates: tally?.duplicates ?? null,
  }
}
