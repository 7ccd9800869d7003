import type { Context } from 'hono'
import { Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { formatMebibytes } from '../../base/format.ts'
import { cleanText } from '../../base/text.ts'
import type { About, Draft, Drafts } from '../../work/upload/drafts.ts'
import { UploadFault } from '../../work/upload/fault.ts'
import { AROUND_BYTES_MAX, receiveForm } from '../../work/upload/form.ts'
import { FILE_BYTES_MAX, storeBody } from '../../work/upload/store-bytes.ts'
import { DISK_LOW } from '../page/banner.ts'
import { Refusal } from '../page/refusal.ts'
import type { DashboardParts, Env } from '../parts.ts'
import { CSRF_FIELD, checkSameSite, checkToken, tokenOfHeader } from '../session/csrf.ts'
import { may } from '../session/signed-in.ts'
import { newListPage } from './new.ts'

/** Where files are sent to. The steps before other forms leave this path alone: its body is a stream. */
export const INTAKE = '/lists/drafts'

/** Taking a list: as a form, or as its bare bytes by a script, which then shows how much of it was sent. */
export function intakeRoutes(drafts: Drafts, { disk }: DashboardParts): Hono<Env> {
  let underWay = 0
  return new Hono<Env>()
    .get('/lists/new', c => newListPage(c))
    .post(INTAKE, async c => {
      const isForm = /^multipart\/form-data\b/i.test(c.req.header('Content-Type') ?? '')
      try {
        const { isLow } = await disk()
        admit(c, underWay, isLow)
        underWay++
        const draft = await take(c, drafts, isForm ? wholeForm : bareBytes).finally(
          () => underWay--,
        )
        const path = `${INTAKE}/${draft.id}`
        return isForm ? c.redirect(path, 303) : c.json({ path }, 201)
      } catch (error) {
        const { status, message } = refusalOf(error)
        const refused = { sentence: message, status: status as ContentfulStatusCode }
        return isForm ? newListPage(c, refused) : c.json({ error: message }, refused.status)
      }
    })
}

/** Each writes to the disk while it comes. */
const UNDER_WAY_MAX = 8
/** As long as the names that the API takes. */
const NAME_LENGTH_MAX = 200

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

type Receive = (c: Context<Env>, path: string) => Promise<About>

function take(c: Context<Env>, drafts: Drafts, receive: Receive): Promise<Draft> {
  return drafts.add(c.get('user').accountId, async path => {
    const about = await receive(c, path)
    if (about.size > 0) return about
    throw new Refusal(400, 'There is nothing in this list. Choose a file, or paste rows.')
  })
}

/** The bytes are the body, and what is known of them stands in headers, where text is percent-encoded. */
async function bareBytes(c: Context<Env>, path: string): Promise<About> {
  checkToken(c, tokenOfHeader(c))
  const name = nameOf(textOf(c, 'X-List-Name'), textOf(c, 'X-File-Name'))
  const size = await storeBody(c.req.raw, path, FILE_BYTES_MAX)
  return { name, size, sandbox: c.req.header('X-List-Sandbox') === 'true' }
}

async function wholeForm(c: Context<Env>, path: string): Promise<About> {
  const { fields, fileName, size } = await receiveForm(c.req.raw, path, {
    ...{ fileFields: ['file', 'rows'], fileBytesMax: FILE_BYTES_MAX },
    admit: before => checkToken(c, before.get(CSRF_FIELD)),
  })
  const name = nameOf(fields.get('name') ?? '', fileName)
  return { name, size, sandbox: fields.get('sandbox') === 'on' }
}

function textOf(c: Context<Env>, header: string): string {
  try {
    return decodeURIComponent(c.req.header(header) ?? '')
  } catch {
    throw new Refusal(400, `The header ${header} is not percent-encoded UTF-8.`)
  }
}

/** What the list is called: as somebody wrote, else as the file is called. */
function nameOf(given: string, fileName: string): string {
  return cleanText(given, NAME_LENGTH_MAX) || cleanText(fileName, NAME_LENGTH_MAX) || 'Pasted rows'
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (!(error instanceof UploadFault)) throw error
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
