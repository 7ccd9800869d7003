import { describe, expect, test } from 'vitest'
import { bareApi } from '../api/contract/document.ts'
import { createTestDashboard } from '../support/dashboard.ts'
import { readDoc } from '../support/markdown.ts'

type TestDashboard = Awaited<ReturnType<typeof createTestDashboard>>

/** All pages of the documentation by path, found by following the links of the first one. */
async function crawl({ get }: TestDashboard): Promise<Map<string, string>> {
  const pages = new Map<string, string>()
  const waiting = ['/docs']
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const { status, text } = await get(path)
    expect([path, status]).toEqual([path, 200])
    pages.set(path, text)
    const found = linksOf(path, text).map(({ page }) => page)
    const isNew = (page: string) => !pages.has(page) && !waiting.includes(page)
    waiting.push(...new Set(found.filter(page => page.startsWith('/docs') && isNew(page))))
  }
  return pages
}

/** The links of a page to this service. */
const linksOf = (path: string, text: string) =>
  [...text.matchAll(/<a [^>]*href="([^"]+)"/g)]
    .map(([, href = '']) => href)
    .filter(href => !/^[a-z]+:/.test(href))
    .map(href => {
      const [page = '', anchor] = href.split('#')
      return { href, page: page === '' ? path : page, anchor }
    })

describe('the documentation', () => {
  test('has no link to a page or a heading that does not exist', async () => {
    const pages = await crawl(await createTestDashboard({ signIn: false }))
    expect(pages.size).toBeGreaterThan(35)
    const broken = [...pages].flatMap(([path, text]) =>
      linksOf(path, text)
        .filter(({ page, anchor }) => {
          if (!page.startsWith('/docs')) return !['/', '/sign-in', '/openapi.json'].includes(page)
          return anchor !== undefined && !pages.get(page)?.includes(`id="${anchor}"`)
        })
        .map(({ href }) => `${path}: ${href}`),
    )
    expect(broken).toEqual([])
  })

  test('describes each operation and each event of the OpenAPI document, with a link from the overview', async () => {
    const pages = await crawl(await createTestDashboard({ signIn: false }))
    const { paths, webhooks } = JSON.parse(readDoc('docs/openapi.json'))
    const all = [...Object.values<object>(paths), ...Object.values<object>(webhooks)].flatMap(
      item => Object.values(item),
    )
    const reference = [...pages]
      .filter(([path]) => path.startsWith('/docs/reference/'))
      .map(([, text]) => text)
      .join('')
    const isMissing = ({ operationId }: { operationId: string }) =>
      !reference.includes(`<h2 id="${operationId}">`)
    expect(all.length).toBeGreaterThan(70)
    expect(all.filter(isMissing)).toEqual([])
    const overview = pages.get('/docs') ?? ''
    for (const path of Object.keys(bareApi().document.paths)) {
      expect(overview).toContain(`<code>${path}</code>`)
    }
  })

  test('has the policy of all pages, and no inline script or style', async () => {
    const dashboard = await createTestDashboard({ signIn: false })
    const strict = (await dashboard.get('/sign-in')).headers.get('Content-Security-Policy')
    expect(strict).not.toMatch(/unsafe|data:|\*/)
    for (const path of ['/docs', '/docs/webhooks', '/docs/reference/verification']) {
      const { headers, text } = await dashboard.get(path)
      expect(headers.get('Content-Security-Policy')).toBe(strict)
      expect(text).not.toMatch(/<script>|<style|\sstyle=|\son\w+=/)
      expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\/[^"]+\.(?:js|css|png|svg|woff2?)"/)
      for (const [, asset = ''] of text.matchAll(/(?:src|href|data-index)="(\/assets\/[^"]+)"/g)) {
        expect([asset, (await dashboard.get(asset)).status]).toEqual([asset, 200])
      }
    }
  })

  test('has the base URL of this service in its samples and guides', async () => {
    const { get } = await createTestDashboard({
      settings: { baseUrl: 'https://api.ev.example:8443' },
    })
    const { text } = await get('/docs/reference/verification')
    expect(text).toContain('curl https://api.ev.example:8443/v1/verify/single')
    expect((await get('/docs/first-request')).text).toContain('https://api.ev.example:8443/v1/')
    expect(text).not.toContain('https://ev.test')
  })

  test('leads a signed-in user back to the dashboard, and a visitor to sign in', async () => {
    const { get, cookies } = await createTestDashboard()
    const { text } = await get('/docs/errors')
    expect(text).toContain('<a href="/docs/errors" aria-current="page">')
    expect(text).toContain('href="/overview"')
    expect(text).not.toContain('name="csrf"')
    cookies.clear()
    const { text: open } = await get('/docs/errors')
    expect(open).toContain('href="/sign-in"')
    expect(open).not.toContain('/overview')
  })

  test('serves no other file', async () => {
    const { get } = await createTestDashboard({ signIn: false })
    for (const path of [
      '/docs/pages.json',
      '/docs/../package.json',
      '/docs/%2e%2e%2fpackage.json',
      '/docs/__proto__',
    ])
      expect([path, (await get(path)).status]).toEqual([path, 404])
  })

  test('stays small: 40 KB for the largest page, compressed', async () => {
    const dashboard = await createTestDashboard({ signIn: false })
    for (const path of (await crawl(dashboard)).keys()) {
      const answer = await dashboard.fetch(path, { headers: { 'Accept-Encoding': 'gzip' } })
      expect(answer.headers.get('Content-Encoding')).toBe('gzip')
      expect([path, (await answer.arrayBuffer()).byteLength < 40 * 1024]).toEqual([path, true])
    }
  })
})
