import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Context, Hono } from 'hono'
import { compress } from 'hono/compress'
import { html, raw } from 'hono/html'
import { assetPath } from './asset.ts'
import type { DashboardDeps, Env } from './deps.ts'
import { type Html, NOTHING } from './page/html.ts'
import { icon } from './page/icon.ts'
import { BRAND, docsPage } from './page/layout.ts'
import { userOf } from './session/signed-in.ts'

/** Paths of the documentation. */
export const DOCS = ['/docs', '/docs/:page{.+}'] as const

/**
 * The documentation: guides and the API reference, which the build renders from docs/. It is public,
 * needs no other host, and works without a script.
 */
export function docsRoutes(deps: DashboardDeps): Hono<Env> {
  let docs: Docs | undefined
  const load = () => {
    docs ??= readDocs(deps.settings.baseUrl)
    return docs
  }
  const show = async (c: Context<Env>, shown: DocsPage) =>
    docsPage(c, {
      title: shown.title,
      styles: ['docs.css'],
      scripts: ['docs.js'],
      nav: navigation(load().groups, {
        path: shown.path,
        isSignedIn: (await userOf(c, deps)) !== null,
      }),
      body: html`${raw(shown.html)}`,
      ...(shown.intro !== undefined && { intro: shown.intro }),
    })
  const [start, others] = DOCS
  return new Hono<Env>()
    .use(`${start}/*`, compress())
    .get(start, c => show(c, { path: '', title: 'Documentation', html: load().overview }))
    .get(others, (c, next) => {
      const shown = load().pages.find(({ path }) => path === c.req.param('page'))
      return shown === undefined ? next() : show(c, shown)
    })
}

/** A page, by its path below `/docs/`. */
type DocsPage = {
  readonly path: string
  readonly title: string
  readonly intro?: string
  readonly html: string
}

type DocsGroup = {
  readonly title: string
  readonly pages: readonly {
    readonly path: string
    readonly title: string
    readonly operations: readonly { readonly id: string; readonly title: string }[]
  }[]
}

type Docs = {
  /** The base URL in the examples. */
  readonly server: string
  readonly groups: readonly DocsGroup[]
  /** The HTML of the first page. */
  readonly overview: string
  readonly pages: readonly DocsPage[]
}

/** The file that `tools/docs/build-docs.mjs` writes: about 1 MB, read at the first request of a page. */
const FILE = join(import.meta.dirname, '../../dist/docs/pages.json')

/** Reads the documentation, with the base URL of this service in its examples. */
function readDocs(baseUrl: string): Docs {
  const text = readFileSync(FILE, 'utf8')
  const { server } = JSON.parse(text) as Docs
  const own = JSON.stringify(`${html`${baseUrl}`}`).slice(1, -1)
  return JSON.parse(text.replaceAll(server, own)) as Docs
}

type Shown = { readonly path: string; readonly isSignedIn: boolean }

/** Renders the sidebar: search, groups of pages, and below the current page its operations. */
const navigation = (groups: readonly DocsGroup[], { path, isSignedIn }: Shown): Html => html`
  <nav class="side is-docs" id="side" popover aria-label="Documentation">
    ${BRAND}
    ${
      isSignedIn
        ? html`<a class="docs-back" href="/overview">${icon('arrow-left')}Dashboard</a>`
        : html`<a class="docs-back" href="/sign-in">Sign in</a>`
    }
    <search class="scripted">
      <label class="docs-search">${icon('search')}<span class="unseen">Search the documentation</span>
        <input type="search" placeholder="Search" autocomplete="off" maxlength="100" data-index="${assetPath('docs-search.json')}" /></label>
      <p class="unseen" role="status"></p>
      <ul class="found" hidden></ul>
    </search>
    <div class="pages">
      <ul><li>${pageLink({ href: '/docs', title: 'Overview', isCurrent: path === '' })}</li></ul>
      ${groups.map(
        ({ title, pages }) => html`
          <h2>${title}</h2>
          <ul>${pages.map(one => {
            const isCurrent = one.path === path
            return html`<li>${pageLink({ href: `/docs/${one.path}`, title: one.title, isCurrent })}${isCurrent ? operationLinks(one.operations) : NOTHING}</li>`
          })}</ul>`,
      )}
    </div>
  </nav>`

type PageLink = { readonly href: string; readonly title: string; readonly isCurrent: boolean }

const pageLink = ({ href, title, isCurrent }: PageLink): Html =>
  html`<a href="${href}" ${isCurrent ? html`aria-current="page"` : NOTHING}>${title}</a>`

const operationLinks = (operations: DocsGroup['pages'][number]['operations']): Html =>
  operations.length === 0
    ? NOTHING
    : html`<ul>${operations.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul>`
