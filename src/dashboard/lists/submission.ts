import { createReadStream } from 'node:fs'
import type { FileDryRun, QueuedFile } from '../../client/types.ts'
import type { Draft } from '../../work/upload/drafts.ts'
import { type Api, problemOf } from '../api.ts'

/** How a file is read: what is left out is looked for in it. */
export type Reading = {
  /** From 1. */
  readonly column: string | undefined
  readonly header: 'true' | 'false' | undefined
}

type Sent = { readonly draft: Draft; readonly path: string; readonly reading: Reading }

/** Asks what would come of a draft. Throws ApiProblem. */
export const lookAt = (api: Api, sent: Sent): Promise<FileDryRun> =>
  send<FileDryRun>(api, sent, { dry_run: 'true' })

/** Makes a job of a draft; asked twice, as by a double click, it is one job. Throws ApiProblem. */
export const submit = (api: Api, sent: Sent): Promise<QueuedFile> =>
  send<QueuedFile>(api, sent, {}, { 'Idempotency-Key': sent.draft.id })

type Fields = Readonly<Record<string, string | undefined>>

async function send<T>(
  api: Api,
  { draft, path, reading }: Sent,
  more: Fields,
  headers: Readonly<Record<string, string>> = {},
): Promise<T> {
  const fields = { ...reading, ...more, name: draft.name }
  // Whoever made the file could not know it.
  const boundary = `ev-${draft.id}`
  const answer = await api.fetch('/v1/verify/file', {
    ...{ method: 'POST', duplex: 'half' },
    // Node's own FormData fails as a whole where its reader leaves early.
    body: ReadableStream.from(formOf(fields, path, boundary)),
    headers: {
      ...headers,
      'Content-Type': `multipart/form-data; boundary=${boundary}`,
      ...(draft.sandbox && { 'X-EV-Sandbox': 'true' }),
    },
  })
  if (!answer.ok) throw await problemOf(answer)
  return (await answer.json()) as T
}

/** The file is read while it is sent: nothing of it is held in memory. */
async function* formOf(fields: Fields, path: string, boundary: string): AsyncGenerator<Uint8Array> {
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) yield Buffer.from(`${headOf(boundary, name)}\r\n\r\n${value}\r\n`)
  }
  yield Buffer.from(`${headOf(boundary, 'file')}; filename="list.csv"\r\n\r\n`)
  yield* createReadStream(path)
  yield Buffer.from(`\r\n--${boundary}--\r\n`)
}

const headOf = (boundary: string, name: string) =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${name}"`
