import { createReadStream } from 'node:fs'
import { basename } from 'node:path'
import type { FileDryRun, QueuedFile } from '../../client/types.ts'
import type { Upload } from '../../jobs/upload/uploads.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Api, problemOf } from '../api.ts'
import { readNonce } from '../page/form.ts'

/** Asks what would come of a list. Throws ApiProblem. */
export const previewList = (api: Api, upload: Upload): Promise<FileDryRun> =>
  send<FileDryRun>(api, upload, { dry_run: 'true' })

/** Makes a job of a list; of a form that is sent twice, as by a double click, it is one job. Throws ApiProblem. */
export function submit(api: Api, upload: Upload): Promise<QueuedFile> {
  const once = nonceIn(upload)
  return send<QueuedFile>(api, upload, {}, once === undefined ? {} : { 'Idempotency-Key': once })
}

/** What a form with a file was numbered with. */
export const nonceIn = ({ fields }: Upload): string | undefined =>
  readNonce({ text: name => fields.get(name) ?? '' })

type Fields = Readonly<Record<string, string | undefined>>

async function send<T>(
  api: Api,
  { path, fields: given, fileName }: Upload,
  more: Fields,
  headers: Readonly<Record<string, string>> = {},
): Promise<T> {
  const name = nameOf(given.get('name') ?? '', fileName)
  const fields = { column: given.get('column'), header: given.get('header'), name, ...more }
  const answer = await api.fetch('/v1/verify/file', {
    ...{ method: 'POST', duplex: 'half' },
    // Node's own FormData fails as a whole where its reader leaves early.
    body: ReadableStream.from(formOf(fields, path)),
    headers: {
      ...headers,
      'Content-Type': `multipart/form-data; boundary=${boundaryOf(path)}`,
      ...(given.get('sandbox') === 'on' && { 'X-EV-Sandbox': 'true' }),
    },
  })
  if (!answer.ok) throw await problemOf(answer)
  return (await answer.json()) as T
}

/** As long as the names that the API takes. */
const NAME_LENGTH_MAX = 200

/** What the list is called: as somebody wrote, else as the file is called. */
const nameOf = (given: string, fileName: string): string =>
  sanitizeText(given, NAME_LENGTH_MAX) || sanitizeText(fileName, NAME_LENGTH_MAX) || 'Pasted rows'

/** The random name of the file here: whoever made it could not know it. */
const boundaryOf = (path: string) => `ev-${basename(path)}`

/** The file is read while it is sent: nothing of it is held in memory. */
async function* formOf(fields: Fields, path: string): AsyncGenerator<Uint8Array> {
  const head = (name: string) =>
    `--${boundaryOf(path)}\r\nContent-Disposition: form-data; name="${name}"`
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) yield Buffer.from(`${head(name)}\r\n\r\n${value}\r\n`)
  }
  yield Buffer.from(`${head('file')}; filename="list.csv"\r\n\r\n`)
  yield* createReadStream(path)
  yield Buffer.from(`\r\n--${boundaryOf(path)}--\r\n`)
}
