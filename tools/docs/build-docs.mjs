// Renders /docs of the service: guides from docs/*.md, the reference from docs/openapi.json, and the
// index of the search.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import MiniSearch from 'minisearch'
import { GUIDES, renderGuides } from './guides.mjs'
import { renderReference } from './reference.mjs'

/**
 * Writes `pages.json` into a folder, and `docs-search.json` into that of the assets. Samples contain the server of the OpenAPI
 * document, which the service replaces with its base URL.
 *
 * @param {string} root the root of the project
 * @param {string} folder
 * @param {string} assets
 */
export function buildDocs(root, folder, assets) {
  const document = JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8'))
  const server = document.servers[0].url
  const { overview, pages, findOperation } = renderReference(document, server)
  const guides = renderGuides(root, { server, findOperation })
  const shown = [...guides, ...pages].map(({ path, title, intro, html }) => ({
    path,
    title,
    intro,
    html,
  }))
  const groups = [
    ...GUIDES.slice(0, 1).map(guideGroup),
    {
      title: 'API reference',
      pages: pages.map(({ path, title, operations }) => ({ path, title, operations })),
    },
    ...GUIDES.slice(1).map(guideGroup),
  ]
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'pages.json'),
    JSON.stringify({ server, groups, overview, pages: shown }),
  )
  const index = searchIndex([...guides, ...pages])
  writeFileSync(join(assets, 'docs-search.json'), JSON.stringify(index))
}

const guideGroup = ({ title, guides }) => ({
  title,
  pages: guides.map(({ path, title: name }) => ({ path, title: name, operations: [] })),
})

/** The browser loads the index with the same options: browser/docs.js. */
function searchIndex(pages) {
  const index = new MiniSearch({
    fields: ['title', 'text'],
    storeFields: ['title', 'url'],
    idField: 'url',
  })
  const parts = new Map(pages.flatMap(({ parts }) => parts).map(part => [part.url, part]))
  index.addAll([...parts.values()])
  return index
}
