import type { Context } from 'hono'
import type { ListDialect } from '../../csv/csv.ts'
import type { Row } from '../../jobs/import/load-job.ts'
import type { Env } from '../context.ts'
import type { Service } from '../service.ts'
import { readName } from './batch.ts'
import { dialectOf, readFlag, readFormOptions, rowsOf } from './file-rows.ts'
import { linksOf, presentQueued, queueList } from './queue.ts'
import type { Upload } from './upload.ts'

/** `POST /v1/verify/file`: a list as people have it becomes a job; its columns come back with the results. */
export async function verifyFile(
  c: Context<Env>,
  service: Service,
  upload: Upload,
): Promise<Response> {
  const { path, fields } = upload
  const name = readName(fields.get('name'))
  const deduplicate = readFlag(fields, 'deduplicate') ?? true
  const options = readFormOptions(fields)
  const dialect = await dialectOf(upload)
  const source = { dialect }
  const rows = storedRows(path, dialect)
  const listed = { type: 'file' as const, name, deduplicate, source, options, rows }
  return queueList(c, service, listed, (job, estimated) => ({
    ...presentQueued(job, estimated, `File queued. Check GET /v1/jobs/${job.id}`),
    ...linksOf(service, job),
    column: dialect.columnName,
    column_number: dialect.column + 1,
    header: dialect.header !== null,
    encoding: dialect.encoding,
    rows: job.total,
  }))
}

/** With the cells that go back with the results. */
async function* storedRows(path: string, dialect: ListDialect): AsyncGenerator<readonly Row[]> {
  for await (const batch of rowsOf(path, dialect)) {
    yield batch.map(({ text, cells }) => ({ text, cells: JSON.stringify(cells) }))
  }
}
