import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

test('the package exports it as evmail/client', () => {
  expect(inject('buildFault')).toBe('')
  const program = `
    import { EvClient, EvApiError } from 'evmail/client'
    const client = new EvClient({
      apiKey: 'ev_live_a',
      baseUrl: 'https://ev.example',
      fetch: async url => Response.json({ data: { asked: url } }),
    })
    console.log(JSON.stringify(await client.credits()), new EvApiError('x', {}).name)`
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', program],
    { cwd: ROOT, encoding: 'utf8' },
  )
  expect([stderr, stdout]).toEqual(['', '{"asked":"https://ev.example/v1/credits"} EvApiError\n'])
})
