import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { limitByAccount } from '../../api/account-share.ts'
import { ApiError } from '../../api/errors/api-error.ts'
import type { FileDryRun, QueuedFile } from '../../client/types.ts'
import { LIST_NAME_LENGTH_MAX, toListName } from '../../jobs/import/list-name.ts'
import {
  AROUND_BYTES_MAX,
  type FormRules,
  type Upload,
  uploads,
} from '../../jobs/import/multipart-form.ts'
import { FILE_BYTES_MAX, UploadFault } from '../../jobs/import/store-upload.ts'
import { formatMebibytes } from '../../platform/format.ts'
import type { Random } from '../../platform/random.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type ApiProblem, problemOf } from '../api.ts'
import type { Api, DashboardDeps, Env, SignedIn } from '../deps.ts'
import { DISK_LOW } from '../page/banner.ts'
import { field, nonceField, nonceTarget, problemWith, readNonce, renewNonce } from '../page/form.ts'
import { type Html, isHtmx, NOTHING } from '../page/html.ts'
import { icon } from '../page/icon.ts'
import { page, part } from '../page/layout.ts'
import { notice, Refusal } from '../page/notice.ts'
import { CSRF_FIELD, checkSameSite, checkToken, csrfField, tokenOfHeader } from '../session/csrf.ts'
import { explainMissingScope, may } from '../session/signed-in.ts'
import { PREVIEW_TITLE, previewPart, step } from './preview-part.ts'

/** Upload path. It is exempt from the form middleware because it streams its body. */
export const INTAKE = '/lists/new'

/**
 * Routes that preview a list (`dry_run` in the query, sent by htmx) or start it. The browser sends
 * the file for each: the server discards it when the request ends.
 */
export function intakeRoutes({ disk, random, settings }: DashboardDeps): Hono<Env> {
  const receive = uploads(settings.dataDir, random)
  const enter = limitByAccount({
    max: UPLOADS_MAX,
    accountMax: UPLOADS_ACCOUNT_MAX,
    what: 'uploads are in progress',
    retryAfterS: UPLOAD_RETRY_S,
  })

  async function previewOrSubmit(c: Context<Env>, upload: Upload): Promise<Response> {
    if (upload.size === 0) throw new Refusal(400, NOTHING_SENT)
    if (c.req.query('dry_run') === 'true') {
      const dryRun = await previewList(c.get('api'), upload)
      const isSandbox = c.get('user').isTest || upload.fields.get('sandbox') === 'on'
      const external = readExternal(upload)
      const preview = previewPart(random, { dryRun, size: upload.size, isSandbox, external })
      if (isHtmx(c)) return part(c, preview)
      return newListPage(c, random, { upload, rows: await pastedRows(upload), preview })
    }
    if (upload.fields.get('notify') === 'on') await saveEmail(c, upload)
    const { job_id } = await submit(c.get('api'), upload)
    return goTo(c, `/lists/${job_id}`)
  }

  return new Hono<Env>()
    .get(INTAKE, c => newListPage(c, random))
    .post(INTAKE, async c => {
      let upload: Upload | undefined
      try {
        const { isLow } = await disk()
        checkUpload(c, isLow)
        const leave = enter(c.get('user').accountId)
        try {
          upload = await receive(c.req.raw, rulesFor(c))
          return await previewOrSubmit(c, upload)
        } finally {
          leave()
          await upload?.discard()
        }
      } catch (error) {
        return rejected(c, random, { problem: refusalOf(error), upload })
      }
    })
}

const goTo = (c: Context<Env>, path: string): Response =>
  isHtmx(c) ? c.body(null, 204, { 'HX-Redirect': path }) : c.redirect(path, 303)

/** Renders why an upload is rejected; for htmx as a notice beside the unchanged form. */
function rejected(
  c: Context<Env>,
  random: Random,
  { problem, upload }: Required<Pick<Draft, 'problem' | 'upload'>>,
): Response | Promise<Response> {
  if (!isHtmx(c)) return newListPage(c, random, { problem, upload })
  c.header('HX-Retarget', '#sending')
  const once = upload && nonceIn(upload)
  const body = html`${notice('bad', problem.message)}${renewNonce(nonceField(random, { once, problem }))}`
  return part(c, body, problem.status as ContentfulStatusCode)
}

/** Limits concurrent uploads, as each writes to the disk, in all and of one account. */
const UPLOADS_MAX = 8
const UPLOADS_ACCOUNT_MAX = 5
const UPLOAD_RETRY_S = 60

/** Throws if the upload can be rejected before its body is read. */
function checkUpload(c: Context<Env>, isDiskLow: boolean): void {
  checkSameSite(c)
  if (!may(c.get('user'), 'verify:bulk')) {
    throw new Refusal(403, missingScope(c))
  }
  if (Number(c.req.header('Content-Length') ?? 0) > FILE_BYTES_MAX + AROUND_BYTES_MAX)
    throw tooLarge()
  if (isDiskLow) throw new Refusal(507, DISK_LOW)
}

const NOTHING_SENT = 'The list is empty. Choose a file or paste rows.'

/** A script sends the CSRF token in a header, a plain form as its first field. */
function rulesFor(c: Context<Env>): FormRules {
  const token = tokenOfHeader(c)
  const isForm = /^multipart\/form-data\b/i.test(c.req.header('Content-Type') ?? '')
  if (token !== undefined || !isForm) checkToken(c, token)
  return {
    fileFields: ['file', 'rows'],
    fileBytesMax: FILE_BYTES_MAX,
    admit: before => checkToken(c, token ?? before.get(CSRF_FIELD)),
  }
}

function refusalOf(error: unknown): Refusal | ApiProblem {
  if (error instanceof Refusal) return error
  if (error instanceof ApiError) return new Refusal(429, error.message)
  if (!(error instanceof UploadFault)) return problemWith(error)
  const { kind, message } = error
  switch (kind) {
    case 'too-large':
      return tooLarge()
    case 'not-stored':
      return new Refusal(
        503,
        'The list could not be stored: the disk of the service is full or not writable. Nothing was saved. Try again later.',
      )
    case 'several-files':
      return new Refusal(400, 'Choose a file or paste rows, not both. Nothing was saved.')
    case 'cut-off':
    case 'malformed':
    case 'no-form':
      return new Refusal(
        400,
        `The upload was incomplete: ${message}. Nothing was saved. Send it again.`,
      )
    default:
      return kind satisfies never
  }
}

const tooLarge = () =>
  new Refusal(
    413,
    `The file is larger than ${formatMebibytes(FILE_BYTES_MAX)}, the maximum size of a list. Split it.`,
  )

/** The form after an attempt; browsers never keep a chosen file. */
type Draft = {
  readonly problem?: Refusal | ApiProblem
  readonly upload?: Upload | undefined
  /** The rows that were pasted. */
  readonly rows?: string
  readonly preview?: Html
}

/** Larger rows are not sent back to the browser. */
const PASTED_BYTES_MAX = 1024 * 1024

const pastedRows = async ({ path, fileName, size }: Upload): Promise<string> =>
  fileName === '' && size <= PASTED_BYTES_MAX ? readFile(path, 'utf8') : ''

/** Renders the upload page; `draft` is the result of the previous attempt. */
function newListPage(
  c: Context<Env>,
  random: Random,
  draft: Draft = {},
): Response | Promise<Response> {
  const title = 'New list'
  if (!may(c.get('user'), 'verify:bulk'))
    return page(c, { title, body: notice('info', missingScope(c)) })
  const { problem, preview, rows } = draft
  const body = html`
    ${preview !== undefined && !rows ? notice('info', FILE_AGAIN) : NOTHING}
    ${listForm(c, random, draft)}`
  const back = { href: '/lists', label: 'Lists' }
  const intro = 'Nothing is verified or charged until you start the list.'
  return page(c, { title, back, intro, body, scripts: ['upload.js'], problem })
}

const FILE_AGAIN = 'This is the preview of your list. To start it, choose the file again.'

/**
 * The CSRF token is the first field, so a forged form is rejected before its file is read.
 * `upload.js` requests the preview as soon as there is a list; without JavaScript a button does. A
 * preview settles at once: until then, a click on its Start button would submit the form, that is,
 * request a preview.
 */
function listForm(c: Context<Env>, random: Random, draft: Draft): Html {
  const { problem, upload, rows = '', preview } = draft
  const once = upload && nonceIn(upload)
  return html`
    <form method="post" action="/lists/new" enctype="multipart/form-data" id="upload" data-max="${FILE_BYTES_MAX}"
      hx-post="/lists/new?dry_run=true" hx-trigger="submit, change from:#preview" hx-encoding="multipart/form-data"
      hx-target="#preview" hx-swap="innerHTML settle:0s">
      ${csrfField(c)}
      ${step('List', listFields(upload?.fields.get('name') ?? '', rows))}
      ${step('Options', optionFields(c.get('user'), upload?.fields))}
      <noscript><div class="actions"><button formaction="/lists/new?dry_run=true">Preview</button>
        ${preview === undefined ? html`<button class="primary">Start</button>` : NOTHING}</div></noscript>
      <div id="preview" aria-live="polite">${preview ?? nonceTarget(nonceField(random, { once, problem }))}</div>
      <div class="is-coming">${step(PREVIEW_TITLE, html`<p class="muted">Choose a file or paste rows to see the first rows, the column with the addresses, the duplicates, and the credits that the list needs.</p>`)}</div>
      <div class="sending" id="sending" role="status"></div>
    </form>`
}

const listFields = (name: string, rows: string): Html => html`
  <div class="sources">
    <div class="field drop">
      <label for="file">${icon('file-text')} File</label>
      <input id="file" name="file" type="file" accept=".csv,.tsv,.txt,.xlsx,.gz,.zip,text/csv,text/plain,text/tab-separated-values"
        aria-describedby="file-hint" />
      <small id="file-hint">CSV, TSV, XLSX, or one address per line, also as .gz or .zip; at most ${formatMebibytes(FILE_BYTES_MAX)} and 1,000,000 rows.
        <span class="scripted">You can also drop a file anywhere on this page.</span></small>
    </div>
    <div class="field">
      <label for="rows">Or paste rows</label>
      <textarea id="rows" name="rows" rows="6" spellcheck="false" autocomplete="off" aria-describedby="rows-hint">${rows}</textarea>
      <small id="rows-hint">One address per line, recipients separated by commas, or rows with several columns.</small>
    </div>
  </div>
  ${field({ label: 'Name', name: 'name', value: name, hint: 'Defaults to the file name.' })}`

type Option = {
  readonly name: 'sandbox' | 'skip_smtp' | 'again' | 'notify'
  readonly label: string
  readonly hint: string
  /** A field that belongs to it. */
  readonly more?: Html
  /** Whether the user cannot change it; `hint` says why. */
  readonly isFixed?: boolean
  readonly isOn?: boolean
}

const listOptions = (user: SignedIn, email: string): readonly Option[] => [
  {
    name: 'sandbox',
    label: 'Sandbox',
    ...(user.isTest
      ? { hint: 'Always on, because you signed in with a test key.', isFixed: true, isOn: true }
      : { hint: 'Simulated results: no mail server is contacted and no credits are used.' }),
  },
  {
    name: 'skip_smtp',
    label: 'Skip mail servers',
    hint: 'Only the format and the domain are checked. Rows without a definite result are free.',
  },
  {
    name: 'again',
    label: 'Ignore cached results',
    hint: 'The mail server is contacted even for addresses that were verified recently.',
  },
  { name: 'notify', label: 'Notify by email', ...notification(user, email) },
]

/** Without an address of the account, the option asks for it, or says how to get one. */
function notification(user: SignedIn, email: string): Omit<Option, 'name' | 'label'> {
  if (user.accountEmail !== null)
    return { hint: `${user.accountEmail} receives an email when the list is finished.` }
  if (!may(user, 'account:write')) {
    return {
      hint: `This account has no email address. ${explainMissingScope(user, 'account:write', 'setting one requires')}`,
      isFixed: true,
    }
  }
  return {
    hint: 'This account has no email address. Enter one to get an email when the list is finished; it is saved for the account.',
    more: html`<input name="${EMAIL_FIELD}" type="email" value="${email}" placeholder="you@example.com"
      autocomplete="email" aria-label="Email address of the account" />`,
  }
}

const EMAIL_FIELD = 'account_email'

function optionFields(user: SignedIn, fields: Upload['fields'] | undefined): Html {
  const options = listOptions(user, fields?.get(EMAIL_FIELD) ?? '')
  return html`
    <div class="boxes">${options.map(
      ({ name, label, hint, more, isFixed = false, isOn = false }) => {
        const checked = isOn || (!isFixed && fields?.get(name) === 'on') ? html`checked` : NOTHING
        return html`
        <label><input type="checkbox" name="${name}" ${checked} ${isFixed ? html`disabled` : NOTHING} data-option />
          <span>${label} <small>${hint}</small></span></label>
        ${more === undefined ? NOTHING : html`<p class="more">${more}</p>`}`
      },
    )}</div>`
}

/** Sets the address of an account without one, to which the email about the list is sent. */
async function saveEmail(c: Context<Env>, { fields }: Upload): Promise<void> {
  if (c.get('user').accountEmail !== null) return
  const email = fields.get(EMAIL_FIELD)?.trim() ?? ''
  if (email === '') {
    throw new Refusal(
      400,
      'This account has no email address. Enter one next to "Notify by email", or clear that box.',
    )
  }
  await c.get('api').ask('/v1/account', { method: 'PATCH', body: { email } })
}

const missingScope = (c: Context<Env>): string =>
  explainMissingScope(c.get('user'), 'verify:bulk', 'uploading a list requires')

/** Requests a dry run of a list. Throws ApiProblem. */
const previewList = (api: Api, upload: Upload): Promise<FileDryRun> =>
  send<FileDryRun>(api, upload, { isDryRun: true })

/** Creates a job; the nonce makes a form submitted twice create one job. Throws ApiProblem. */
function submit(api: Api, upload: Upload): Promise<QueuedFile> {
  const once = nonceIn(upload)
  const headers = once === undefined ? {} : { 'Idempotency-Key': once }
  return send<QueuedFile>(api, upload, { isDryRun: false, headers })
}

/** Returns the nonce of an upload form. */
const nonceIn = ({ fields }: Upload): string | undefined =>
  readNonce({ text: name => fields.get(name) ?? '' })

/** Returns whether rows keep results of another service, and the date of its export. */
function readExternal({ fields }: Upload) {
  const isKept = fields.get('keep_external') === 'true'
  return { isKept, date: isKept ? (fields.get('external_date') ?? '') : '' }
}

type Fields = Readonly<Record<string, string | undefined>>

type SendOptions = {
  readonly isDryRun: boolean
  readonly headers?: Readonly<Record<string, string>>
}

async function send<T>(
  api: Api,
  upload: Upload,
  { isDryRun, headers = {} }: SendOptions,
): Promise<T> {
  const { path, fields: uploaded, fileName } = upload
  const external = readExternal(upload)
  const name = nameOf(uploaded.get('name') ?? '', fileName)
  const sheet = uploaded.get('sheet') || undefined
  // The columns of another sheet are detected again.
  const isSameSheet = sheet === undefined || sheet === uploaded.get('shown_sheet')
  const [column, header, all_addresses] = ['column', 'header', 'all_addresses'].map(one =>
    isSameSheet ? uploaded.get(one) : undefined,
  )
  const isOn = (option: Option['name']) => uploaded.get(option) === 'on'
  const fields = {
    sheet,
    column,
    header,
    all_addresses,
    keep_external: external.isKept ? 'true' : undefined,
    external_date: external.date || undefined,
    name,
    check_smtp: isOn('skip_smtp') ? 'false' : undefined,
    force_refresh: isOn('again') ? 'true' : undefined,
    // A preview sends no email, and the account may not have an address yet.
    notify: isOn('notify') && !isDryRun ? 'true' : undefined,
    dry_run: isDryRun ? 'true' : undefined,
  }
  const response = await api.fetch('/v1/verify/file', {
    method: 'POST',
    duplex: 'half',
    // Node's FormData throws if the reader stops early.
    body: ReadableStream.from(formOf(fields, path)),
    headers: {
      ...headers,
      'Content-Type': `multipart/form-data; boundary=${boundaryOf(path)}`,
      ...(isOn('sandbox') && { 'X-EV-Sandbox': 'true' }),
    },
  })
  if (!response.ok) throw await problemOf(response)
  return (await response.json()) as T
}

/** Returns the name of the list: the typed name, else the file name. */
const nameOf = (typed: string, fileName: string): string =>
  sanitizeText(typed, LIST_NAME_LENGTH_MAX) || toListName(fileName) || 'Pasted rows'

/** Uses the random name of the stored file, which the content of the upload cannot contain. */
const boundaryOf = (path: string) => `ev-${basename(path)}`

/** Streams the multipart body; the file is not loaded into memory. */
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
