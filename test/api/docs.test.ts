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
