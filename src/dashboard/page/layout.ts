import type { Context } from 'hono'
import { getCookie } from 'hono/cookie'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { assetPath } from '../asset.ts'
import type { Env } from '../deps.ts'
import { takeNote } from '../session/cookie.ts'
import { CSRF_FIELD } from '../session/csrf.ts'
import type { SignedIn } from '../session/signed-in.ts'
import { type Html, NOTHING } from './html.ts'
import { notice } from './notice.ts'

export type Page = {
  readonly title: string
  readonly body: Html | readonly Html[]
  /** Beside the title: the buttons of the page. */
  readonly actions?: Html
  /** Files of `browser/` that this page needs beside `app.js`. */
  readonly scripts?: readonly string[]
  readonly status?: ContentfulStatusCode
}

/** Answers with a page for who is signed in. */
export async function page(c: Context<Env>, o: Page): Promise<Response> {
  const user = c.get('user')
  const note = takeNote(c)
  const banners = await c.get('banners')()
  const main = html`
    <header class="head"><h1>${o.title}</h1><div class="actions">${o.actions ?? NOTHING}</div></header>
    <div id="notes" aria-live="polite">${note === null ? NOTHING : notice('ok', note)}</div>
    ${banners} ${o.body}`
  const frame = html`
    <a class="skip" href="#main">Skip to the page</a>
    <nav class="rooms" aria-label="Pages"><div>
      <a class="brand" href="/">ev</a>
      <ul>${ROOMS.filter(({ isFor }) => isFor(user)).map(room => link(c, room))}</ul>
      ${account(c, user)}
    </div></nav>
    <main id="main" tabindex="-1">${main}</main>`
  return c.html(document(c, { ...o, body: frame, csrf: user.csrf }), o.status ?? 200)
}

/** Answers with a page for who is not. */
export function barePage(c: Context<Env>, o: Page): Response | Promise<Response> {
  const body = html`
    <main id="main" class="bare">
      <p class="brand">ev</p>
      <h1>${o.title}</h1>
      ${o.body}
    </main>`
  return c.html(document(c, { ...o, body, csrf: null }), o.status ?? 200)
}

/** Answers with a part of a page, for htmx to put in. */
export const part = (c: Context<Env>, body: Html, status: ContentfulStatusCode = 200) =>
  c.html(html`${body}`, status)

type Room = {
  readonly path: string
  readonly name: string
  readonly isFor: (user: SignedIn) => boolean
}

const everyUser = () => true

const ROOMS: readonly Room[] = [
  { path: '/verify', name: 'Verify', isFor: everyUser },
  { path: '/lists', name: 'Lists', isFor: everyUser },
  { path: '/keys', name: 'Keys', isFor: everyUser },
  { path: '/webhooks', name: 'Webhooks', isFor: everyUser },
  { path: '/usage', name: 'Usage', isFor: everyUser },
  { path: '/doctor', name: 'Health', isFor: user => user.isAdmin },
]

const isHere = (c: Context<Env>, { path }: Room) =>
  c.req.path === path || c.req.path.startsWith(`${path}/`)

const link = (c: Context<Env>, room: Room) =>
  html`<li><a href="${room.path}" ${isHere(c, room) ? html`aria-current="page"` : NOTHING}>${room.name}</a></li>`

/** From a page that is not there, to those beside it. */
export function backLink(c: Context<Env>): Html {
  const room = ROOMS.find(one => c.req.path !== one.path && isHere(c, one))
  return room === undefined
    ? NOTHING
    : html`<p><a class="button" href="${room.path}">Back to ${room.name}</a></p>`
}

const account = (c: Context<Env>, user: SignedIn) => html`
  <details class="account">
    <summary>${user.accountName}</summary>
    <div class="menu">
      <p>Signed in with the key “${user.keyName}”, plan ${user.plan}.</p>
      <a href="/sessions">Sessions</a>
      <a href="/docs">API</a>
      <form method="post" action="/theme">
        <input type="hidden" name="${CSRF_FIELD}" value="${user.csrf}" />
        <input type="hidden" name="next" value="${c.req.path}" />
        Colours:
        ${THEMES.map(
          theme =>
            html`<button class="quiet" name="theme" value="${theme}" aria-pressed="${String(theme === themeOf(c))}">${theme}</button>`,
        )}
      </form>
      <form method="post" action="/sign-out">
        <input type="hidden" name="${CSRF_FIELD}" value="${user.csrf}" />
        <button>Sign out</button>
      </form>
    </div>
  </details>`

/** `auto`: as the system has it. */
export const THEMES = ['auto', 'light', 'dark'] as const
export const THEME_COOKIE = 'ev_theme'

const themeOf = (c: Context<Env>) =>
  THEMES.find(one => one === getCookie(c, THEME_COOKIE)) ?? 'auto'

/** htmx neither evaluates text nor writes styles of its own: the policy of the page allows neither. */
const HTMX = JSON.stringify({
  ...{ includeIndicatorStyles: false, allowEval: false, selfRequestsOnly: true },
  ...{ historyCacheSize: 0, refreshOnHistoryMiss: true, attributesToSettle: ['class'] },
  // A refusal is a sentence to be shown, too.
  responseHandling: [
    { code: '204', swap: false },
    { code: '...', swap: true },
  ],
})

function document(c: Context<Env>, o: Page & { readonly csrf: string | null }) {
  const theme = themeOf(c)
  const headers =
    o.csrf === null ? NOTHING : html`hx-headers='${JSON.stringify({ 'X-CSRF-Token': o.csrf })}'`
  return html`<!doctype html>
    <html lang="en" data-theme="${theme}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="${theme === 'auto' ? 'light dark' : theme}" />
        <meta name="htmx-config" content="${HTMX}" />
        ${o.csrf === null ? NOTHING : html`<meta name="csrf" content="${o.csrf}" />`}
        <title>${o.title} · ev</title>
        <link rel="icon" href="${assetPath('icon.svg')}" type="image/svg+xml" />
        <link rel="stylesheet" href="${assetPath('style.css')}" />
        <script defer src="${assetPath('htmx.js')}"></script>
        ${['app.js', ...(o.scripts ?? [])].map(
          name => html`<script type="module" src="${assetPath(name)}"></script>`,
        )}
      </head>
      <body ${headers}>
        ${o.body}
      </body>
    </html>`
}
