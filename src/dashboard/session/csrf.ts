import { timingSafeEqual } from 'node:crypto'
import type { Context, MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { html } from 'hono/html'
import type { Env } from '../deps.ts'
import { Refusal } from '../page/notice.ts'

/** Form field and header that carry the CSRF token. */
export const CSRF_FIELD = '_csrf'
const CSRF_HEADER = 'X-CSRF-Token'

/** Renders the hidden field with the CSRF token. */
export const csrfField = (c: Context<Env>) =>
  html`<input type="hidden" name="${CSRF_FIELD}" value="${c.get('user').csrf}" />`

/** Rejects state-changing requests that no page of this session sent. */
export const checkCsrf = (): MiddlewareHandler<Env> => async (c, next) => {
  if (isReading(c)) return next()
  checkSameSite(c)
  checkToken(c, tokenOfHeader(c) ?? (await tokenOfForm(c)))
  return next()
}

/** Throws 403 unless `submitted` is the CSRF token of this session. */
export function checkToken(c: Context<Env>, submitted: string | undefined): void {
  if (!isSame(submitted, c.get('user').csrf)) throw invalidToken()
}

/** Returns the token that a script sends in a header. */
export const tokenOfHeader = (c: Context<Env>): string | undefined => c.req.header(CSRF_HEADER)

/** In bytes: forms have a few fields. Uploads have their own route and limit. */
const FORM_BYTES_MAX = 64 * 1024

/** Limits the body of forms, which are read into memory. */
export const shortForms = () =>
  bodyLimit({
    maxSize: FORM_BYTES_MAX,
    onError: () => {
      throw new Refusal(413, 'This form is longer than 64 KB. Send less.')
    },
  })

/** Throws 403 on a cross-site request. The only check at sign-in, where there is no token yet. */
export function checkSameSite(c: Context<Env>): void {
  const site = c.req.header('Sec-Fetch-Site')
  const origin = c.req.header('Origin')
  const isSameOrigin =
    site === undefined
      ? origin === undefined || URL.parse(origin)?.host === new URL(c.req.url).host
      : site === 'same-origin'
  if (!isSameOrigin) throw invalidToken()
}

/**
 * Whether a page of this site links to this one: for a GET that starts something. A link in a mail
 * program is none. Browsers without Sec-Fetch-Site send a Referer, which pages of this site allow for
 * this site only.
 */
export function isOwnNavigation(c: Context<Env>): boolean {
  const site = c.req.header('Sec-Fetch-Site')
  if (site !== undefined) return site === 'same-origin'
  return URL.parse(c.req.header('Referer') ?? '')?.host === new URL(c.req.url).host
}

const isReading = ({ req }: Context<Env>) => req.method === 'GET' || req.method === 'HEAD'

async function tokenOfForm(c: Context<Env>): Promise<string | undefined> {
  const type = c.req.header('Content-Type') ?? ''
  if (!/^application\/x-www-form-urlencoded/i.test(type)) return undefined
  const field = (await c.req.parseBody())[CSRF_FIELD]
  return typeof field === 'string' ? field : undefined
}

function isSame(submitted: string | undefined, token: string): boolean {
  const [one, other] = [Buffer.from(submitted ?? ''), Buffer.from(token)]
  return one.length === other.length && timingSafeEqual(one, other)
}

const invalidToken = () =>
  new Refusal(
    403,
    'This form does not belong to your session. Nothing was changed. Reload the page and send the form again.',
  )
