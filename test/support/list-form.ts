import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createTestService, type RequestOptions } from './service.ts'

const PATH = '/v1/verify/file'
const BOUNDARY = '----ev'
export const FORM = `multipart/form-data; boundary=${BOUNDARY}`

type Part = string | { readonly file: string | Uint8Array; readonly name?: string }

/** Encodes a form. */
export function form(parts: readonly (readonly [field: string, part: Part])[]): Buffer {
  const pieces = parts.flatMap(([field, part]) => {
    const isFile = typeof part !== 'string'
    const more = isFile ? `; filename="${part.name ?? 'list.csv'}"\r\nContent-Type: text/csv` : ''
    const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${field}"${more}\r\n\r\n`
    return [Buffer.from(head), Buffer.from(isFile ? part.file : part), Buffer.from('\r\n')]
  })
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)])
}

/** Creates a service with functions that upload files and inspect the result. */
export async function createUploadService(options: Parameters<typeof createTestService>[0] = {}) {
  const fixture = await createTestService(options)
  const send = (body: Uint8Array | string, o: RequestOptions = {}) =>
    fixture.request(PATH, { body, ...o, headers: { 'Content-Type': FORM, ...o.headers } })
  const upload = (file: string | Uint8Array, fields: Readonly<Record<string, string>> = {}) =>
    send(form([['file', { file }], ...Object.entries(fields)]))
  const rows = () =>
    fixture.database.db.selectFrom('item').select(['text', 'cells']).orderBy('position').execute()
  const job = () => fixture.database.db.selectFrom('job').selectAll().executeTakeFirst()
  const left = () => {
    const folder = join(fixture.service.settings.dataDir, 'uploads')
    return existsSync(folder) ? readdirSync(folder) : []
  }
  return { ...fixture, send, upload, rows, job, left }
}
