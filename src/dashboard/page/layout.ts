import type { Context } from 'hono'
import { getCookie } from 'hono/cookie'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { permits } from '../../accounts/key-rights.ts'
import { formatPlan } from '../../platform/text.ts'
import type { ApiProblem } from '../api.ts'
import { assetPath } from '../asset.ts'
import type { Alerts, Env, SignedIn } from '../deps.ts'
import { takeNote } from '../session/cookie.ts'
import { CSRF_FIELD } from '../session/csrf.ts'
import { withLabel } from './form.ts'
import { type Html, NOTHING } from './html.ts'
import { type IconName, icon } from './icon.ts'
import { notice, type Refusal } from './notice.ts'

type Page = {
  readonly title: string
  readonly body: Html | readonly Html[]
  /** The page above this one. */
  readonly back?: { readonly href: string; readonly label: string }
  /** The state of what the page shows, beside the title. */
  readonly badge?: Html
  /** A sentence or a status below the title. */
  readonly intro?: Html | string
  /** Buttons beside the title; at most one is primary. */
  readonly actions?: Html
  /** Files of `browser/` to load in addition to `app.js`. */
  readonly scripts?: readonly string[]
  /** Stylesheets of `browser/` to load in addition to `style.css`. */
  readonly styles?: readonly string[]
  /** Defaults to the status of `problem`, else 200. */
  readonly status?: ContentfulStatusCode | undefined
  /** Why a form of the page was refused, shown above the body. */
  readonly problem?: Problem | undefined
  /** The labels of that form by API field, for the text of `problem`. */
  readonly labels?: Readonly<Record<string, string>>
  /** False hides the alerts, as on a page with a secret that is shown once. */
  readonly hasAlerts?: boolean
}

/** An error of the API or of the dashboard, or a sentence about what was entered (400). */
type Problem = ApiProblem | Refusal | string

const problemNotice = ({ problem, labels = {} }: Page): Html => {
  if (problem === undefined) return NOTHING
  return notice('bad', typeof problem === 'string' ? problem : withLabel(problem, labels))
}

function statusOf({ status, problem }: Page): ContentfulStatusCode {
  if (status !== undefined) return status
  if (problem === undefined) return 200
  return typeof problem === 'string' ? 400 : (problem.status as ContentfulStatusCode)
}

/** Renders a page for a signed-in user. */
export async function page(c: Context<Env>, o: Page): Promise<Response> {
  const user = c.get('user')
  const note = takeNote(c)
  const alerts = await c.get('alerts')()
  const frame = html`
    ${TOP}
    <nav class="side" id="side" popover aria-label="Pages">
      ${BRAND} ${GROUPS.map(group => links(c, group, alerts))} ${account(c, user)}
    </nav>
    <main id="main" tabindex="-1">
      ${head(o)}
      <div id="notes" aria-live="polite">${note === null ? NOTHING : notice('ok', note)}</div>
      ${o.hasAlerts === false ? NOTHING : html`<div class="alerts">${alerts.notices}</div>`} ${problemNotice(o)} ${o.body}
    </main>`
  return c.html(document(c, { ...o, body: frame, csrf: user.csrf }), statusOf(o))
}

export const BRAND: Html = html`<a class="brand" href="/"><span>${icon('mail-check')}</span>ev</a>`

/** Above the page: a link for keyboards, and on a phone the button of the sidebar. */
const TOP: Html = html`
  <a class="skip" href="#main">Skip to content</a>
  <header class="topbar">
    <button type="button" class="quiet is-icon" popovertarget="side" aria-label="Menu">${icon('menu')}</button>${BRAND}
  </header>`

const head = ({ title, back, badge, intro, actions }: Page): Html => html`
  <header class="head" id="head">
    <div>
      ${back === undefined ? NOTHING : html`<a class="crumb" href="${back.href}">${icon('arrow-left')}${back.label}</a>`}
      ${badge === undefined ? html`<h1>${title}</h1>` : html`<div class="title"><h1>${title}</h1>${badge}</div>`}
      ${intro === undefined ? NOTHING : html`<p class="intro">${intro}</p>`}
    </div>
    ${actions === undefined ? NOTHING : html`<div class="actions">${actions}</div>`}
  </header>`

/** Renders a page without navigation, as before sign-in. */
export function barePage(c: Context<Env>, o: Page): Response | Promise<Response> {
  const body = html`
    <main id="main" class="bare">
      <div class="brand"><span>${icon('mail-check')}</span>ev</div>
      <h1>${o.title}</h1>
      ${problemNotice(o)} ${o.body}
    </main>`
  return c.html(document(c, { ...o, body, csrf: null }), statusOf(o))
}

/** Renders a page of the documentation, for visitors and signed-in users; `nav` is its sidebar. */
export function docsPage(
  c: Context<Env>,
  o: Page & { readonly nav: Html },
): Response | Promise<Response> {
  const body = html`${TOP} ${o.nav} <main id="main" tabindex="-1">${head(o)} ${o.body}</main>`
  return c.html(document(c, { ...o, body, csrf: null }), o.status ?? 200)
}

/** Renders a fragment that htmx swaps into the page. */
export const part = (c: Context<Env>, body: Html, status: ContentfulStatusCode = 200) =>
  c.html(html`${body}`, status)

type Section = {
  readonly path: string
  readonly name: string
  readonly icon: IconName
  readonly isFor?: (user: SignedIn) => boolean
  /** Returns what needs attention there, in a few words. */
  readonly alert?: (alerts: Alerts) => string | null
}

type Group = { readonly title: string | null; readonly sections: readonly Section[] }

const failing = ({ failingWebhooks: { length } }: Alerts) =>
  length === 0 ? null : `${length} failing`

const GROUPS: readonly Group[] = [
  {
    title: null,
    sections: [
      { path: '/overview', name: 'Overview', icon: 'house' },
      { path: '/verify', name: 'Verify', icon: 'mail-check' },
      { path: '/lists', name: 'Lists', icon: 'list-checks' },
      { path: '/usage', name: 'Usage', icon: 'chart-column' },
      {
        path: '/feedback',
        name: 'Feedback',
        icon: 'send',
        isFor: ({ scopes }) => permits(scopes, 'feedback:read'),
      },
    ],
  },
  {
    title: 'Developers',
    sections: [
      { path: '/keys', name: 'API keys', icon: 'key-round' },
      { path: '/webhooks', name: 'Webhooks', icon: 'webhook', alert: failing },
      { path: '/docs', name: 'Documentation', icon: 'book-open' },
    ],
  },
  {
    title: 'Settings',
    sections: [
      {
        path: '/account',
        name: 'Account',
        icon: 'users',
        isFor: ({ scopes }) => permits(scopes, 'account:read'),
      },
      {
        path: '/people',
        name: 'People',
        icon: 'users',
        isFor: ({ scopes }) => permits(scopes, 'account:read'),
      },
      {
        path: '/audit',
        name: 'Audit log',
        icon: 'file-text',
        isFor: ({ scopes }) => permits(scopes, 'audit:read'),
      },
    ],
  },
  {
    title: 'Admin',
    sections: [
      {
        path: '/doctor',
        name: 'Health',
        icon: 'activity',
        isFor: ({ isAdmin }) => isAdmin,
        alert: ({ needsHealth }) => (needsHealth ? 'needs attention' : null),
      },
    ],
  },
]

const SECTIONS = GROUPS.flatMap(({ sections }) => sections)

const isCurrent = (c: Context<Env>, { path }: Section) =>
  c.req.path === path || c.req.path.startsWith(`${path}/`)

function links(c: Context<Env>, { title, sections }: Group, alerts: Alerts): Html {
  const shown = sections.filter(({ isFor }) => isFor?.(c.get('user')) ?? true)
  if (shown.length === 0) return NOTHING
  return html`
    ${title === null ? NOTHING : html`<h2>${title}</h2>`}
    <ul>${shown.map(
      one =>
        html`<li><a href="${one.path}" ${isCurrent(c, one) ? html`aria-current="page"` : NOTHING}>${icon(one.icon)}${one.name}${mark(one.alert?.(alerts))}</a></li>`,
    )}</ul>`
}

const mark = (alert: string | null | undefined): Html =>
  alert === null || alert === undefined
    ? NOTHING
    : html`<span class="alert" title="${alert}">${icon('triangle-alert')}<span class="unseen">${alert}</span></span>`

/** Renders a link from an error page to the start of its section. */
export function backLink(c: Context<Env>): Html {
  const section = SECTIONS.find(one => c.req.path !== one.path && isCurrent(c, one))
  return section === undefined
    ? NOTHING
    : html`<p><a class="button" href="${section.path}">Back to ${section.name}</a></p>`
}

const account = (c: Context<Env>, user: SignedIn) => html`
  <details class="account">
    <summary><span class="avatar" aria-hidden="true">${initialsOf(user.accountName)}</span>
      <span>${user.accountName} <small>${formatPlan(user.plan)}${user.isTest ? ', sandbox' : ''}</small></span></summary>
    <div class="menu">
      <p><small>${signedInAs(user)}</small></p>
      <form method="post" action="/theme" class="segment" aria-label="Theme">
        <input type="hidden" name="${CSRF_FIELD}" value="${user.csrf}" />
        <input type="hidden" name="next" value="${c.req.path}" />
        ${THEMES.map(
          theme =>
            html`<button name="theme" value="${theme}" aria-pressed="${String(theme === themeOf(c))}">${icon(THEME_ICONS[theme])}${THEME_NAMES[theme]}</button>`,
        )}
      </form>
      ${user.person === null ? NOTHING : html`<a href="/profile">${icon('key-round')}Your sign-in</a>`}
      <a href="/sessions">${icon('monitor')}Sessions</a>
      <form method="post" action="/sign-out">
        <input type="hidden" name="${CSRF_FIELD}" value="${user.csrf}" />
        <button>${icon('log-out')}Sign out</button>
      </form>
    </div>
  </details>`

const signedInAs = ({ person, name, isTest }: SignedIn): string =>
  person === null
    ? `Signed in with the ${isTest ? 'test key' : 'key'} "${name}"`
    : `Signed in as ${name} (${person.role})`

/** Returns the first letters of up to two words. */
const initialsOf = (name: string): string =>
  name
    .split(/\s+/)
    .slice(0, 2)
    .map(word => [...word][0] ?? '')
    .join('')
    .toUpperCase()

/** `auto` follows the system setting. */
export const THEMES = ['auto', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]
const THEME_NAMES: Readonly<Record<Theme, string>> = { auto: 'Auto', light: 'Light', dark: 'Dark' }
const THEME_ICONS: Readonly<Record<Theme, IconName>> = {
  auto: 'monitor',
  light: 'sun',
  dark: 'moon',
}
export const THEME_COOKIE = 'ev_theme'

const themeOf = (c: Context<Env>) =>
  THEMES.find(one => one === getCookie(c, THEME_COOKIE)) ?? 'auto'

/** The Content-Security-Policy allows neither eval nor inline styles, so htmx must use neither. */
const HTMX = JSON.stringify({
  includeIndicatorStyles: false,
  allowEval: false,
  selfRequestsOnly: true,
  historyCacheSize: 0,
  refreshOnHistoryMiss: true,
  attributesToSettle: ['class'],
  // Swap error responses too: they contain a notice.
  responseHandling: [
    { code: '204', swap: false },
    { code: '...', swap: true },
  ],
})

/** Only pages of a signed-in user have parts that htmx loads. */
const signedInHead = (csrf: string): Html => html`
  <meta name="htmx-config" content="${HTMX}" />
  <meta name="csrf" content="${csrf}" />
  <script defer src="${assetPath('htmx.js')}"></script>`

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
        ${o.csrf === null ? NOTHING : signedInHead(o.csrf)}
        <title>${o.title} · ev</title>
        <link rel="icon" href="${assetPath('icon.svg')}" type="image/svg+xml" />
        <link rel="preload" href="${assetPath('inter.woff2')}" as="font" type="font/woff2" crossorigin />
        ${['style.css', ...(o.styles ?? [])].map(name => html`<link rel="stylesheet" href="${assetPath(name)}" />`)}
        <script type="module" blocking="render" src="${assetPath('app.js')}"></script>
        ${(o.scripts ?? []).map(
          name => html`<script type="module" src="${assetPath(name)}"></script>`,
        )}
      </head>
      <body ${headers}>
        ${o.body}
      </body>
    </html>`
}
