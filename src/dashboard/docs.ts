import { Hono } from 'hono'
import { html } from 'hono/html'
import type { DashboardDeps, Env } from './deps.ts'
import { alerts } from './page/banner.ts'
import { page, publicPage } from './page/layout.ts'
import { setUser } from './session/signed-in.ts'

/**
 * The API reference: Swagger UI, with all files from this host. It is public; for a signed-in user
 * it has the sidebar.
 */
export function docsRoutes(deps: DashboardDeps): Hono<Env> {
  const policy = docsPolicy(deps.settings.baseUrl)
  return new Hono<Env>().use('/docs/*', alerts(deps)).get('/docs', async c => {
    c.header('Content-Security-Policy', policy)
    const reference = {
      ...{ title: 'API reference', style: 'docs.css', scripts: ['docs.js'] },
      body: html`
        <div id="reference" data-document="/openapi.json"></div>
        <noscript><p>The reference needs JavaScript. <a href="/openapi.json">Open the OpenAPI document</a></p></noscript>`,
    }
    return (await setUser(c, deps)) ? page(c, reference) : publicPage(c, reference)
  })
}

/**
 * The policy of the dashboard with two exceptions: Swagger UI sets styles on elements and has data:
 * images in its CSS, and it sends requests to `baseUrl`, which can differ from the origin of the
 * page.
 */
const docsPolicy = (baseUrl: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    `connect-src 'self' ${URL.parse(baseUrl)?.origin ?? ''}`.trim(),
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
