import type { Context } from 'hono'
import type { ListDialect } from '../../csv/csv.ts'
import type { Row } from '../../jobs/import/load-job.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../context.ts'
import type { Service } from '../service.ts'
import { readName } from './batch.ts'
import { findDialect, readRows } from './file-rows.ts'
import { jobLinks, presentQueued, queueList, readListOptions } from './queue.ts'
import type { TextUpload } from './text-upload.ts'

/** Creates a job from a file. Its columns are returned with the results. */
export async function verifyFile(
  c: Context<Env>,
  service: Service,
  upload: TextUpload,
): Promise<Response> {
  const { path, fileName, content } = upload
  const name = readName(upload.options.name)
  const deduplicate = upload.options.deduplicate ?? true
  const options = await readListOptions(c, service, upload.options)
  const dialect = await findDialect(upload)
  const file_name = name === null ? sanitizeText(fileName) : ''
  const source = { dialect, ...(file_name === '' ? {} : { file_name }) }
  const rows = storedRows(path, dialect)
  const listed = { type: 'file' as const, name, deduplicate, source, options, rows }
  return queueList(c, service, listed, (job, estimated) => ({
    ...presentQueued(job, estimated, `File queued. Check GET /v1/jobs/${job.id}`),
    ...jobLinks(service, job),
    column: dialect.columnName,
    column_number: dialect.column + 1,
    header: dialect.header !== null,
    encoding: dialect.encoding,
    sheet: content.workbook && sanitizeText(content.workbook.sheet, 80),
    rows: job.total,
  }))
}

/** Adds the cells, which are returned with the results. */
async function* storedRows(path: string, dialect: ListDialect): AsyncGenerator<readonly Row[]> {
  for await (const batch of readRows(path, dialect)) {
    yield batch.map(({ text, cells }) => ({ text, cells: JSON.stringify(cells) }))
  }
}
