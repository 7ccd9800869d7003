import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../support/dashboard.ts'

describe('every page', () => {
  test('allows only scripts and styles of this origin, no frames and no caching', async () => {
    const services = await createTestDashboard()
    for (const path of ['/', '/sessions', '/sign-in', '/welcome/x', '/nowhere/at/all']) {
      const { headers } = await services.get(path)
      const policy = headers.get('Content-Security-Policy') ?? ''
      expect([path, policy.includes("default-src 'none'")]).toEqual([path, true])
      expect(policy).not.toMatch(/unsafe|\*|data:/)
      expect(headers.get('Cache-Control')).toBe('no-store')
    }
    const { headers } = await services.get('/sessions')
    expect(headers.get('X-Frame-Options')).toBe('DENY')
    expect(headers.get('Referrer-Policy')).toBe('same-origin')
  })

  test('configures htmx without eval, other origins and history cache', async () => {
    const services = await createTestDashboard()
    const { text } = await services.get('/sessions')
    const written = /name="htmx-config" content="([^"]+)"/.exec(text)?.[1] ?? ''
    expect(JSON.parse(written.replaceAll('&quot;', '"'))).toMatchObject({
      allowEval: false,
      selfRequestsOnly: true,
      includeIndicatorStyles: false,
      historyCacheSize: 0,
    })
  })

  test('has assets at versioned paths, and serves nothing else there', async () => {
    const services = await createTestDashboard()
    const { text } = await services.get('/sessions')
    const paths = [...text.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(
      match => match[1] as string,
    )
    expect(paths.length).toBeGreaterThan(3)
    for (const path of paths) {
      const file = await services.get(path)
      expect([path, file.status]).toEqual([path, 200])
      expect(file.headers.get('Cache-Control')).toContain('immutable')
    }
    for (const name of ['tsconfig.json', '..%2fdashboard.ts', '%2e%2e/asset.ts']) {
      expect((await services.get(`/assets/x/${name}`)).status).toBe(404)
    }
  })

  test('loads the script for forms from any site, and again only if it has changed', async () => {
    const { app } = await createTestDashboard()
    const load = (headers: Record<string, string> = {}) => app.request('/form.js', { headers })
    const script = await load()
    const header = (name: string) => script.headers.get(name)
    expect([script.status, header('Content-Type')]).toEqual([200, 'text/javascript; charset=utf-8'])
    expect(header('Cross-Origin-Resource-Policy')).toBe('cross-origin')
    expect(header('Access-Control-Allow-Origin')).toBe('*')
    expect(header('Cache-Control')).toMatch(/^public, max-age=86400/)
    const tag = header('ETag') ?? ''
    expect((await load({ 'If-None-Match': tag })).status).toBe(304)
    expect(gzipSync(await script.text()).length).toBeLessThan(5 * 1024)
    const small = await load({ 'Accept-Encoding': 'br' })
    expect(small.headers.get('Content-Encoding')).toBe('br')
    expect(small.headers.get('ETag')).not.toBe(tag)
  })

  test('is "not found" for an unknown path that a browser opens, without a session too', async () => {
    const services = await createTestDashboard({ signIn: false })
    const { status, text, headers } = await services.get('/nowhere', { Accept: 'text/html,*/*' })
    expect([status, text.includes('<h1>Page not found</h1>')]).toEqual([404, true])
    expect(headers.get('Content-Security-Policy')).toContain("default-src 'none'")
    expect(text).not.toContain('<nav class="side"')
  })

  test('has the sidebar for an unknown path too', async () => {
    const services = await createTestDashboard()
    const { status, text, headers } = await services.get('/nowhere', { Accept: 'text/html,*/*' })
    expect([status, text.includes('<h1>Page not found</h1>')]).toEqual([404, true])
    expect(headers.get('Content-Security-Policy')).toContain("default-src 'none'")
    expect(text).toContain('<nav class="side"')
  })

  test('returns the API error for an unknown path to programs, and below /v1', async () => {
    const services = await createTestDashboard()
    expect((await services.get('/nowhere')).text).toContain('"not_found"')
    const unknown = await services.get('/v1/nowhere', { Accept: 'text/html' })
    expect(unknown.text).toContain('"not_found"')
  })
})
