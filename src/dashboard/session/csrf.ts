import { timingSafeEqual } from 'node:crypto'
import type { Context, MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { html } from 'hono/html'
import type { Env } from '../deps.ts'
import { Refusal } from '../page/notice.ts'

/** What a form, or the header of a script, must bring along. */
export const CSRF_FIELD = '_csrf'
const CSRF_HEADER = 'X-CSRF-Token'

/** The field of a form that shows that it is ours. */
export const csrfField = (c: Context<Env>) =>
  html`<input type="hidden" name="${CSRF_FIELD}" value="${c.get('user').csrf}" />`

/** Refuses what changes something unless a page of this very session sent it. */
export const checkCsrf = (): MiddlewareHandler<Env> => async (c, next) => {
  if (isReading(c)) return next()
  checkSameSite(c)
  checkToken(c, tokenOfHeader(c) ?? (await tokenOfForm(c)))
  return next()
}

/** Refuses what did not bring the token of this very session along. */
export function checkToken(c: Context<Env>, given: string | undefined): void {
  if (!isSame(given, c.get('user').csrf)) throw foreign()
}

/** What a script sends. */
export const tokenOfHeader = (c: Context<Env>): string | undefined => c.req.header(CSRF_HEADER)

/** Bytes: forms here have a few fields. Lists come by a path of their own. */
export const FORM_BYTES_MAX = 64 * 1024

/** Forms are read whole, so none may be long. */
export const shortForms = () =>
  bodyLimit({
    maxSize: FORM_BYTES_MAX,
    onError: () => {
      throw new Refusal(413, 'This form is longer than 64 KB. Send less.')
    },
  })

/** Browsers say from where a request comes; who signs in has no token yet. */
export function checkSameSite(c: Context<Env>): void {
  const site = c.req.header('Sec-Fetch-Site')
  const origin = c.req.header('Origin')
  const isOurs =
    site === undefined
      ? origin === undefined || URL.parse(origin)?.host === new URL(c.req.url).host
      : site === 'same-origin'
  if (!isOurs) throw foreign()
}

const isReading = ({ req }: Context<Env>) => req.method === 'GET' || req.method === 'HEAD'

async function tokenOfForm(c: Context<Env>): Promise<string | undefined> {
  const type = c.req.header('Content-Type') ?? ''
  if (!/^application\/x-www-form-urlencoded/i.test(type)) return undefined
  const field = (await c.req.parseBody())[CSRF_FIELD]
  return typeof field === 'string' ? field : undefined
}

function isSame(given: string | undefined, token: string): boolean {
  const [one, other] = [Buffer.from(given ?? ''), Buffer.from(token)]
  return one.length === other.length && timingSafeEqual(one, other)
}

const foreign = () =>
  new Refusal(
    403,
    'This form does not belong to your session, so nothing was changed. Open the page again, and send the form from there.',
  )
