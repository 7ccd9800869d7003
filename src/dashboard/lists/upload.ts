import { createReadStream } from 'node:fs'
import { basename } from 'node:path'
import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { FileDryRun, QueuedFile } from '../../client/types.ts'
import { AROUND_BYTES_MAX, type FormRules } from '../../jobs/upload/multipart-form.ts'
import { FILE_BYTES_MAX } from '../../jobs/upload/store-upload.ts'
import { UploadFault } from '../../jobs/upload/upload-error.ts'
import { type Upload, uploads } from '../../jobs/upload/uploads.ts'
import { formatMebibytes } from '../../platform/format.ts'
import type { Random } from '../../platform/random.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type ApiProblem, problemOf } from '../api.ts'
import type { Api, DashboardDeps, Env } from '../deps.ts'
import { DISK_LOW } from '../page/banner.ts'
import { field, nonceField, nonceTarget, problemWith, readNonce, renewNonce } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { notice, Refusal } from '../page/notice.ts'
import { CSRF_FIELD, checkSameSite, checkToken, csrfField, tokenOfHeader } from '../session/csrf.ts'
import { may } from '../session/signed-in.ts'
import { previewPart } from './preview-part.ts'

/** Where lists are sent to. The steps before other forms leave this path alone: its body is a stream. */
export const INTAKE = '/lists/new'

/**
 * Takes a list with its form, either to show what would come of it (`dry_run` in the query, asked by htmx) or to start
 * it. The browser keeps the file and sends it for each: nothing of it stays here when the request is answered.
 */
export function intakeRoutes({ disk, random, settings }: DashboardDeps): Hono<Env> {
  const receive = uploads(settings.dataDir, random)
  let underWay = 0

  async function take(c: Context<Env>, upload: Upload): Promise<Response> {
    if (upload.size === 0) throw new Refusal(400, NOTHING_SENT)
    if (c.req.query('dry_run') === 'true') {
      const seen = await previewList(c.get('api'), upload)
      return part(c, previewPart(random, upload, seen))
    }
    const { job_id } = await submit(c.get('api'), upload)
    return goTo(c, `/lists/${job_id}`)
  }

  return new Hono<Env>()
    .get(INTAKE, c => newListPage(c, random))
    .post(INTAKE, async c => {
      let upload: Upload | undefined
      try {
        const { isLow } = await disk()
        admit(c, underWay, isLow)
        underWay++
        try {
          upload = await receive(c.req.raw, rulesFor(c))
          return await take(c, upload)
        } finally {
          underWay--
          await upload?.discard()
        }
      } catch (error) {
        return refused(c, random, { problem: refusalOf(error), once: upload && nonceIn(upload) })
      }
    })
}

const isHtmx = (c: Context<Env>) => c.req.header('HX-Request') === 'true'

const goTo = (c: Context<Env>, path: string): Response =>
  isHtmx(c) ? c.body(null, 204, { 'HX-Redirect': path }) : c.redirect(path, 303)

/** Says why a list is not taken; where htmx asked, beside the form, which stays as it is. */
function refused(c: Context<Env>, random: Random, o: Refused): Response | Promise<Response> {
  if (!isHtmx(c)) return newListPage(c, random, o)
  c.header('HX-Retarget', '#sending')
  const body = html`${notice('bad', o.problem.message)}${renewNonce(nonceField(random, o))}`
  return part(c, body, o.problem.status as ContentfulStatusCode)
}

/** Each writes to the disk while it comes. */
const UNDER_WAY_MAX = 8
/** What can be said before a byte of it was read. */
function admit(c: Context<Env>, underWay: number, isDiskLow: boolean): void {
  checkSameSite(c)
  if (!may(c.get('user'), 'verify:bulk')) {
    throw new Refusal(
      403,
      'The key of this session lacks the scope verify:bulk: no list can be sent with it.',
    )
  }
  if (Number(c.req.header('Content-Length') ?? 0) > FILE_BYTES_MAX + AROUND_BYTES_MAX)
    throw tooLarge()
  if (isDiskLow) throw new Refusal(507, DISK_LOW)
  if (underWay >= UNDER_WAY_MAX) {
    throw new Refusal(
      429,
      'Several lists are being sent at this moment. Send yours again in a minute.',
    )
  }
}

const NOTHING_SENT = 'There is nothing in this list. Choose a file, or paste rows.'

/** A script sends the token of the session in a header, and a form as its first field. */
function rulesFor(c: Context<Env>): FormRules {
  const token = tokenOfHeader(c)
  const isForm = /^multipart\/form-data\b/i.test(c.req.header('Content-Type') ?? '')
  if (token !== undefined || !isForm) checkToken(c, token)
  return {
    ...{ fileFields: ['file', 'rows'], fileBytesMax: FILE_BYTES_MAX },
    admit: before => checkToken(c, token ?? before.get(CSRF_FIELD)),
  }
}

function refusalOf(error: unknown): Refusal | ApiProblem {
  if (error instanceof Refusal) return error
  if (!(error instanceof UploadFault)) return problemWith(error)
  const { kind, message } = error
  switch (kind) {
    case 'too-large':
      return tooLarge()
    case 'not-stored':
      return new Refusal(
        503,
        'The list could not be stored: the disk of the service is full, or cannot be written to. Nothing of it was kept; send it again later.',
      )
    case 'cut-off':
    case 'malformed':
    case 'no-form':
      return new Refusal(
        400,
        `The list did not come whole: ${message}. Nothing of it was kept; send it again.`,
      )
    default:
      return kind satisfies never
  }
}

const tooLarge = () =>
  new Refusal(
    413,
    `The file has more than ${formatMebibytes(FILE_BYTES_MAX)}, which is the most a list may have. Divide it.`,
  )

/** Why a list is not taken, and what its form was numbered with. */
type Refused = {
  readonly problem: Refusal | ApiProblem
  readonly once?: string | undefined
}

/** Where a list is sent from; `refused`: why what was sent before is not taken. */
function newListPage(
  c: Context<Env>,
  random: Random,
  refused?: Refused,
): Response | Promise<Response> {
  const title = 'New list'
  if (!may(c.get('user'), 'verify:bulk')) return page(c, { title, body: notAllowed(c) })
  const body = html`
    ${refused === undefined ? NOTHING : notice('bad', refused.problem.message)}
    <p class="scripted">Look at what is found in a list first. Nothing is verified, and nothing is charged, before you start it.</p>
    ${listForm(c, random, refused)}`
  const status = (refused?.problem.status ?? 200) as ContentfulStatusCode
  return page(c, { title, body, scripts: ['upload.js'], status })
}

/** The token comes first, so that a form of somebody else is refused before its file is read. */
const listForm = (c: Context<Env>, random: Random, refused?: Refused): Html => html`
  <form method="post" action="/lists/new" enctype="multipart/form-data" id="upload" data-max="${FILE_BYTES_MAX}"
    hx-post="/lists/new?dry_run=true" hx-trigger="submit, change from:#preview" hx-encoding="multipart/form-data"
    hx-target="#preview" hx-disabled-elt="#upload button">
    ${csrfField(c)}
    ${field({ label: 'Name', name: 'name', hint: 'What you call the list; left empty, the name of the file.' })}
    <p><label class="tick"><input type="checkbox" name="sandbox" /> Sandbox: simulated answers, nobody is asked, costs nothing</label></p>
    <p class="field drop">
      <label for="file">File</label>
      <input id="file" name="file" type="file" accept=".csv,.tsv,.txt,text/csv,text/plain,text/tab-separated-values"
        aria-describedby="file-hint" />
      <small id="file-hint">CSV, TSV, or one address a line; at most ${formatMebibytes(FILE_BYTES_MAX)} and 1,000,000 rows.
        <span class="scripted">Or drop it anywhere on this page.</span></small>
    </p>
    <p class="field">
      <label for="rows">Or paste rows</label>
      <textarea id="rows" name="rows" rows="6" spellcheck="false" autocomplete="off" aria-describedby="rows-hint"></textarea>
      <small id="rows-hint">One address a line, or rows with several columns.</small>
    </p>
    <button class="primary scripted">Look at it</button>
    <noscript><button class="primary">Start</button></noscript>
    <div class="sending" id="sending" role="status"></div>
    <div id="preview" aria-live="polite">${nonceTarget(nonceField(random, refused))}</div>
  </form>`

const notAllowed = (c: Context<Env>) =>
  notice(
    'info',
    `The key “${c.get('user').keyName}” lacks the scope verify:bulk, so no list can be sent with it. Sign in with a key that has it, or give it to this one under Keys.`,
  )

/** Asks what would come of a list. Throws ApiProblem. */
const previewList = (api: Api, upload: Upload): Promise<FileDryRun> =>
  send<FileDryRun>(api, upload, { dry_run: 'true' })

/** Makes a job of a list; of a form that is sent twice, as by a double click, it is one job. Throws ApiProblem. */
function submit(api: Api, upload: Upload): Promise<QueuedFile> {
  const once = nonceIn(upload)
  return send<QueuedFile>(api, upload, {}, once === undefined ? {} : { 'Idempotency-Key': once })
}

/** What a form with a file was numbered with. */
const nonceIn = ({ fields }: Upload): string | undefined =>
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
