// The guides of /docs, from the Markdown files of docs/: a guide is a file, or sections of a file.
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { marked } from 'marked'
import { anchorOf, createMarkdown, plain, textOf } from './markdown.mjs'

const api = (path, title, ...sections) => ({ path, title, file: 'docs/api.md', sections })
const file = (path, title, name) => ({ path, title, file: name ?? `docs/${path}.md` })

/** All guides in the order of the navigation. `path` is below `/docs/`. */
export const GUIDES = [
  {
    title: 'Guides',
    guides: [
      api('first-request', 'First request', 'Quick start'),
      api('authentication', 'Authentication', 'Keys'),
      api('single-addresses', 'Single addresses', 'Single addresses'),
      api('verify-lists', 'Lists', 'Lists'),
      api('jobs', 'Jobs and results', 'Jobs'),
      file('verdicts', 'Verdicts'),
      file('webhooks', 'Webhooks'),
      api('errors', 'Errors', 'Errors'),
      api('pagination', 'Pagination', 'Pagination'),
      api('idempotency', 'Idempotency', 'Idempotency', 'Guarantees'),
      api('limits', 'Limits and credits', 'Limits'),
      api('sandbox', 'Sandbox', 'Sandbox'),
      api('accounts', 'Accounts and history', 'Accounts', 'Audit log', 'History'),
      file('forms', 'Forms on websites'),
      file('feedback', 'Feedback'),
      file('client', 'Client for JavaScript'),
      file('python', 'Client for Python', 'clients/python/README.md'),
      file('mcp', 'AI agents'),
      file('from-reacher', 'Coming from Reacher'),
      api('examples', 'Examples', 'Examples', 'In JavaScript and TypeScript', 'Agents'),
    ],
  },
  {
    title: 'Running ev',
    guides: [
      file('service', 'Running the service'),
      file('dashboard', 'Dashboard'),
      file('identity-provider', 'Identity provider'),
      file('operating', 'Operating ev'),
      file('port-25', 'A way to port 25'),
      file('debian', 'Debian package'),
      file('scaling', 'Several machines'),
      file('alerts', 'Alerts'),
      file('upgrades', 'Upgrades'),
      file('docker', 'Docker'),
      file('kubernetes', 'Kubernetes'),
      file('cli', 'Command line'),
      file('custom-lists', 'Custom lists', 'docs/lists.md'),
      file('engine', 'Engine'),
      file('simulator', 'Simulator'),
    ],
  },
]

/** The base URL in the examples of docs/, which a service replaces with its own. */
const EXAMPLE_URL = 'http://127.0.0.1:8080'

/**
 * Returns the guides with their HTML and their sections for the search.
 *
 * @param {string} root the root of the project
 * @param {string} server what replaces the base URL in examples
 * @param {(code: string) => string | undefined} findOperation returns the URL of an operation
 */
export function renderGuides(root, { server, findOperation }) {
  const parsed = GUIDES.flatMap(({ guides }) => guides).map(guide => parseGuide(root, guide))
  const urls = new Map(parsed.flatMap(({ anchors }) => [...anchors]))
  return parsed.map(({ guide, tokens, shift }) => {
    const resolve = href => resolveLink(urls, guide.file, href)
    const html = createMarkdown({ resolve, findOperation, shift }).parser(tokens)
    const own = html.replaceAll(EXAMPLE_URL, server)
    return { path: guide.path, title: guide.title, html: own, parts: partsOf(guide, own) }
  })
}

/** Reads the tokens of a guide, without its title, and the URL of each of its headings. */
function parseGuide(root, guide) {
  const { sections } = guide
  const all = marked.lexer(readFileSync(join(root, guide.file), 'utf8'))
  const tokens =
    sections === undefined ? withoutTitle(all) : sections.flatMap(findSection(all, guide))
  const url = `/docs/${guide.path}`
  // A section that is all of a guide is named by the title of the guide.
  const isOneSection = sections?.length === 1
  const anchors = new Map(sections === undefined ? [[guide.file, url]] : [])
  for (const token of tokens.filter(({ type }) => type === 'heading')) {
    const anchor = anchorOf(plain(token.text))
    const isTitle = sections !== undefined && token === tokens[0]
    anchors.set(`${guide.file}#${anchor}`, isTitle ? url : `${url}#${anchor}`)
  }
  if (guide.path === 'first-request') anchors.set(guide.file, '/docs')
  return {
    guide,
    anchors,
    tokens: sections === undefined ? tokens : tokens.slice(1),
    shift: isOneSection ? -1 : 0,
  }
}

const withoutTitle = tokens => tokens.filter(({ type, depth }) => type !== 'heading' || depth !== 1)

const findSection = (tokens, guide) => heading => {
  const isSection = ({ type, depth }) => type === 'heading' && depth === 2
  const start = tokens.findIndex(token => isSection(token) && token.text === heading)
  if (start < 0) throw new Error(`${guide.file} has no section "${heading}"`)
  const end = tokens.findIndex((token, at) => at > start && isSection(token))
  return tokens.slice(start, end < 0 ? undefined : end)
}

/** Returns the URL of a link of a page; null if the service does not serve its target. */
function resolveLink(urls, from, href) {
  if (/^[a-z]+:/.test(href)) return href
  const [target, anchor] = href.split('#')
  const path = target === '' ? from : posix.join(posix.dirname(from), target)
  if (path === 'docs/openapi.json') return '/openapi.json'
  return urls.get(anchor === undefined ? path : `${path}#${anchor}`) ?? null
}

/** Returns the sections of a page for the search: its beginning, and the text below each heading. */
function partsOf({ path, title }, html) {
  const [first, ...others] = html.split(/(?=<h[2-4] id=)/)
  const url = `/docs/${path}`
  return [
    { url, title, text: textOf(first) },
    ...others.map(part => {
      const [, id, heading] = /^<h\d id="([^"]*)">(.*?)<\/h\d>/.exec(part)
      return {
        url: `${url}#${id}`,
        title: `${title}: ${textOf(heading)}`,
        text: textOf(part.slice(part.indexOf('</h'))),
      }
    }),
  ]
}
