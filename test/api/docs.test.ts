import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { createTestService } from '../support/service.ts'

describe('the OpenAPI document', () => {
  test('is valid', async () => {
    const { request } = await createTestService()
    const document = await (await request('/openapi.json', { key: null })).json()
    expect(await new Validator().validate(document as Record<string, unknown>)).toMatchObject({
      valid: true,
    })
    expect(document).toMatchObject({ openapi: '3.1.0', servers: [{ url: 'https://ev.test' }] })
  })

  test('names and describes each operation, its key, and its errors', async () => {
    const { request } = await createTestService()
    const document = await (await request('/openapi.json')).json()
    type Operation = {
      operationId?: string
      tags?: string[]
      security?: object[]
      responses: Record<string, { content?: object }>
    }
    const operations = Object.entries(
      (document as { paths: Record<string, Record<string, Operation>> }).paths,
    ).flatMap(([path, methods]) => Object.values(methods).map(one => ({ path, ...one })))
    expect(operations.length).toBeGreaterThan(25)
    for (const one of operations) {
      expect(one).toMatchObject({ operationId: expect.any(String), summary: expect.any(String) })
      expect(one.tags).toHaveLength(1)
      if (!one.path.startsWith('/v1/')) continue
      expect(one.security).toEqual([{ bearer: [] }])
      for (const status of ['401', '403', '429', '500', '503']) {
        expect(one.responses[status]?.content).toHaveProperty('application/json')
      }
    }
    const ids = operations.map(one => one.operationId)
    expect(new Set(ids).size).toBe(ids.length)
  })
})

describe('the page', () => {
  test('loads nothing from other hosts and has no inline script', async () => {
    const { request } = await createTestService()
    const page = await request('/docs', { key: null })
    const html = await page.text()
    expect(html).not.toMatch(/https?:|<script>|\son\w+=/)
    const policy = page.headers.get('Content-Security-Policy') ?? ''
    expect(policy).toContain("default-src 'none'; script-src 'self';")
    expect(policy).not.toContain('unsafe-eval')
    for (const [, file = ''] of html.matchAll(/<(?:script|link) [^>]*(?:src|href)="([^"]+)"/g)) {
      const answer = await request(file, { key: null })
      expect([file, answer.status]).toEqual([file, 200])
      expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(50)
    }
  })

  test('may send requests to the base URL, from wherever it was opened', async () => {
    const { request } = await createTestService({ settings: { baseUrl: 'https://ev.test/mail' } })
    const page = await request('/docs', { key: null })
    const policy = page.headers.get('Content-Security-Policy')
    expect(policy).toContain("; connect-src 'self' https://ev.test;")
  })

  test.each(['/docs/package.json', '/docs/../package.json', '/docs/%2e%2e%2fpackage.json'])(
    'serves no other file: %s',
    async path => {
      const { request } = await createTestService()
      expect((await request(path, { key: null })).status).toBe(404)
    },
  )
})
