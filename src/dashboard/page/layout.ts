import type { Context } from 'hono'
import { getCookie } from 'hono/cookie'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { assetPath } from '../asset.ts'
import type { Env, SignedIn } from '../deps.ts'
import { takeNote } from '../session/cookie.ts'
import { CSRF_FIELD } from '../session/csrf.ts'
import { type Html, NOTHING } from './html.ts'
import { notice } from './notice.ts'

type Page = {
  readonly title: string
  readonly body: Html | readonly Html[]
  /** Buttons beside the title. */
  readonly actions?: Html
  /** Files of `browser/` to load in addition to `app.js`. */
  readonly scripts?: readonly string[]
  readonly status?: ContentfulStatusCode
}

/** Renders a page for a signed-in user. */
export async function page(c: Context<Env>, o: Page): Promise<Response> {
  const user = c.get('user')
  const note = takeNote(c)
  const banners = await c.get('banners')()
  const main = html`
    <header class="head"><h1>${o.title}</h1><div class="actions">${o.actions ?? NOTHING}</div></header>
    <div id="notes" aria-live="polite">${note === null ? NOTHING : notice('ok', note)}</div>
    ${banners} ${o.body}`
  const frame = html`
    <a class="skip" href="#main">Skip to content</a>
    <nav class="rooms" aria-label="Pages"><div>
      <a class="brand" href="/">ev</a>
      <ul>${SECTIONS.filter(({ isFor }) => isFor(user)).map(section => link(c, section))}</ul>
      ${account(c, user)}
    </div></nav>
    <main id="main" tabindex="-1">${main}</main>`
  return c.html(document(c, { ...o, body: frame, csrf: user.csrf }), o.status ?? 200)
}

/** Renders a page without navigation, as before sign-in. */
export function barePage(c: Context<Env>, o: Page): Response | Promise<Response> {
  const body = html`
    <main id="main" class="bare">
      <p class="brand">ev</p>
      <h1>${o.title}</h1>
      ${o.body}
    </main>`
  return c.html(document(c, { ...o, body, csrf: null }), o.status ?? 200)
}

/** Renders a fragment that htmx swaps into the page. */
export const part = (c: Context<Env>, body: Html, status: ContentfulStatusCode = 200) =>
  c.html(html`${body}`, status)

type Section = {
  readonly path: string
  readonly name: string
  readonly isFor: (user: SignedIn) => boolean
}

const everyUser = () => true

const SECTIONS: readonly Section[] = [
  { path: '/verify', name: 'Verify', isFor: everyUser },
  { path: '/lists', name: 'Lists', isFor: everyUser },
  { path: '/keys', name: 'Keys', isFor: everyUser },
  { path: '/webhooks', name: 'Webhooks', isFor: everyUser },
  { path: '/usage', name: 'Usage', isFor: everyUser },
  { path: '/doctor', name: 'Health', isFor: user => user.isAdmin },
]

const isCurrent = (c: Context<Env>, { path }: Section) =>
  c.req.path === path || c.req.path.startsWith(`${path}/`)

const link = (c: Context<Env>, section: Section) =>
  html`<li><a href="${section.path}" ${isCurrent(c, section) ? html`aria-current="page"` : NOTHING}>${section.name}</a></li>`

/** Renders a link from an error page to the start of its section. */
export function backLink(c: Context<Env>): Html {
  const section = SECTIONS.find(one => c.req.path !== one.path && isCurrent(c, one))
  return section === undefined
    ? NOTHING
    : html`<p><a class="button" href="${section.path}">Back to ${section.name}</a></p>`
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
        Theme:
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

/** `auto` follows the system setting. */
export const THEMES = ['auto', 'light', 'dark'] as const
export const THEME_COOKIE = 'ev_theme'

const themeOf = (c: Context<Env>) =>
  THEMES.find(one => one === getCookie(c, THEME_COOKIE)) ?? 'auto'

/** The Content-Security-Policy allows neither eval nor inline styles, so htmx must use neither. */
const HTMX = JSON.stringify({
  ...{ includeIndicatorStyles: false, allowEval: false, selfRequestsOnly: true },
  ...{ historyCacheSize: 0, refreshOnHistoryMiss: true, attributesToSettle: ['class'] },
  // Swap error responses too: they contain a notice.
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
