import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../support/dashboard.ts'

describe('the API reference', () => {
  test('loads nothing from other hosts and has no inline script', async () => {
    const { get, fetch } = await createTestDashboard({ signIn: false })
    const { text, headers } = await get('/docs')
    expect(text).not.toMatch(/https?:|<script>|\son\w+=/)
    const policy = headers.get('Content-Security-Policy') ?? ''
    expect(policy).toContain("default-src 'none'; script-src 'self';")
    expect(policy).not.toContain('unsafe-eval')
    const assets = /href="([^"]+)docs\.css"/.exec(text)?.[1] ?? ''
    for (const name of [
      'docs.css',
      'docs.js',
      'style.css',
      'swagger-ui.css',
      'swagger-ui-bundle.js',
    ]) {
      const file = await fetch(`${assets}${name}`)
      expect([name, file.status]).toEqual([name, 200])
      expect((await file.arrayBuffer()).byteLength).toBeGreaterThan(500)
    }
  })

  test('may send requests to the base URL', async () => {
    const { get } = await createTestDashboard({ settings: { baseUrl: 'https://api.ev.test:8443' } })
    const policy = (await get('/docs')).headers.get('Content-Security-Policy')
    expect(policy).toContain("; connect-src 'self' https://api.ev.test:8443;")
  })

  test('has the sidebar for a signed-in user, and a link to sign in otherwise', async () => {
    const { get, cookies } = await createTestDashboard()
    const { text } = await get('/docs')
    expect(text).toContain('<a href="/docs" aria-current="page">')
    expect(text).not.toContain('/sign-in')
    cookies.clear()
    const { text: open, status } = await get('/docs')
    expect(status).toBe(200)
    expect(open).toContain('<a class="button" href="/sign-in?next=%2Fdocs">Sign in</a>')
    expect(open).not.toContain('name="csrf"')
  })

  test('serves no other file', async () => {
    const { get } = await createTestDashboard({ signIn: false })
    for (const path of [
      '/docs/package.json',
      '/docs/../package.json',
      '/docs/%2e%2e%2fpackage.json',
    ])
      expect([path, (await get(path)).status]).toEqual([path, 404])
  })
})
