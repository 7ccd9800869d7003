import type { Context } from 'hono'
import { Hono } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { AROUND_BYTES_MAX, type FormRules } from '../../jobs/upload/multipart-form.ts'
import { FILE_BYTES_MAX } from '../../jobs/upload/store-upload.ts'
import { UploadFault } from '../../jobs/upload/upload-error.ts'
import { type Upload, uploads } from '../../jobs/upload/uploads.ts'
import { formatMebibytes } from '../../platform/format.ts'
import type { Random } from '../../platform/random.ts'
import type { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { DISK_LOW } from '../page/banner.ts'
import { problemWith } from '../page/form-data.ts'
import { nonceField, renewNonce } from '../page/form-nonce.ts'
import { part } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { Refusal } from '../page/refusal.ts'
import { CSRF_FIELD, checkSameSite, checkToken, tokenOfHeader } from '../session/csrf.ts'
import { may } from '../session/signed-in.ts'
import { newListPage, type Refused } from './new.ts'
import { previewPart } from './preview-part.ts'
import { nonceIn, previewList, submit } from './submission.ts'

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
