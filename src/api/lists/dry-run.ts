import type { Context } from 'hono'
import type { ListDialect } from '../../csv/csv.ts'
import { countImportedRows, type ImportCounter } from '../../jobs/import/import-counter.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../context.ts'
import { clientAborted } from '../middleware/client-aborted.ts'
import { creditState } from '../middleware/rate-limit.ts'
import type { Service } from '../service.ts'
import { estimatedTime } from '../verify/estimate.ts'
import { readName } from './batch.ts'
import { emptyList } from './emails.ts'
import { columnsOf, readFlag, readFormOptions, rowsOf } from './file-rows.ts'
import type { Upload } from './upload.ts'

/**
 * `POST /v1/verify/file` with `dry_run`: what would come of a file. It is read and counted as one that is submitted,
 * but nothing is stored, charged or asked; and where the column is not found, its owner is shown those there are.
 */
export async function dryRun(c: Context<Env>, service: Service, upload: Upload): Promise<Response> {
  c.set('isDryRun', true)
  const { path, fields } = upload
  // What is refused of a list that is submitted is refused here.
  readName(fields.get('name'))
  const deduplicate = readFlag(fields, 'deduplicate') ?? true
  const { checkSmtp } = readFormOptions(fields)
  const { dialect, isFound } = await columnsOf(upload)
  const preview = await previewOf(path, dialect)
  if (preview.length === 0) throw emptyList('The list has no rows.')
  const { signal } = c.req.raw
  const counting = { deduplicate, random: service.random, signal }
  const tally = isFound ? await countImportedRows(rowsOf(path, dialect), counting) : null
  if (signal.aborted) throw clientAborted()
  return c.json({
    success: true,
    dry_run: true,
    columns: presentColumns(dialect),
    column: isFound ? shown(dialect.columnName ?? '') || null : null,
    column_number: isFound ? dialect.column + 1 : null,
    header: dialect.header !== null,
    encoding: dialect.encoding,
    delimiter: dialect.delimiter,
    ...presentCounts(tally),
    credits_needed: c.get('sandbox') ? 0 : (tally?.asked ?? null),
    credits_balance: (await creditState(service, c.get('caller')))?.remaining ?? null,
    estimated_time:
      tally &&
      (await estimatedTime(service, {
        ...{ jobId: null, domains: tally.domains, sandbox: c.get('sandbox'), checkSmtp },
      })),
    preview,
  })
}

const PREVIEW_ROWS = 5
/** Columns that are shown: nobody looks through more, and a file may have a hundred thousand. */
const COLUMNS_MAX = 200
/** Of a name or a cell: enough to know it again. */
const CELL_LENGTH_MAX = 80

/** The first rows, of which hardly anything is read. */
async function previewOf(path: string, dialect: ListDialect): Promise<string[][]> {
  const rows: string[][] = []
  for await (const batch of rowsOf(path, dialect)) {
    for (const { cells } of batch) {
      if (rows.length < PREVIEW_ROWS) rows.push(cells.slice(0, COLUMNS_MAX).map(shown))
    }
    if (rows.length === PREVIEW_ROWS) break
  }
  return rows
}

const shown = (cell: string) => sanitizeText(cell, CELL_LENGTH_MAX)

/** The one of addresses is among them, be it far beyond. */
function presentColumns({ header, width, column }: ListDialect) {
  const numbers = Array.from({ length: Math.min(width, COLUMNS_MAX) }, (_, at) => at + 1)
  if (column >= numbers.length) numbers.push(column + 1)
  return numbers.map(number => ({ number, name: shown(header?.[number - 1] ?? '') || null }))
}

function presentCounts(tally: ImportCounter | null) {
  const malformed = tally?.malformed ?? null
  return {
    rows: tally?.total ?? null,
    total_emails: tally?.total ?? null,
    valid_emails: tally === null ? null : tally.total - tally.malformed,
    invalid_format_emails: malformed,
    duplicates: tally?.duplicates ?? null,
  }
}
