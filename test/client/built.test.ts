import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, inject, test } from 'vitest'

const DIST = join(import.meta.dirname, '../../dist/client')
const built = () =>
  readdirSync(DIST, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.(js|d\.ts)$/.test(name))
    .map(name => ({ name, text: readFileSync(join(DIST, name), 'utf8') }))

test('the client imports nothing but itself', () => {
  expect(inject('buildFault')).toBe('')
  const imported = built().flatMap(({ name, text }) =>
    [...text.matchAll(IMPORT)].map(([, target = '']) => ({ name, target })),
  )
  expect(imported.length).toBeGreaterThan(20)
  expect(imported.filter(one => !isInside(one))).toEqual([])
})

test('the client names nothing that only Node has', () => {
  const own = built().filter(({ text }) =>
    /\b(process|Buffer|__dirname|setImmediate|require|NodeJS)\b\s*[.(]|AbortSignal\.any|types="node"/.test(
      text.replace(/\/\*[\s\S]*?\*\/|\/\/.*|`[^`]*`|'[^'\n]*'/g, ''),
    ),
  )
  expect(own.map(({ name }) => name)).toEqual([])
})

test('the package gives it as ev/client, in a plain Node', () => {
  const program = `
    import { EvClient, EvApiError } from 'ev/client'
    const client = new EvClient({
      apiKey: 'ev_live_a',
      baseUrl: 'https://ev.example',
      fetch: async url => Response.json({ data: { asked: url } }),
    })
    console.log(JSON.stringify(await client.credits()), new EvApiError('x', {}).name)`
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', program],
    { cwd: join(DIST, '../..'), encoding: 'utf8' },
  )
  expect([stderr, stdout]).toEqual(['', '{"asked":"https://ev.example/v1/credits"} EvApiError\n'])
})

const IMPORT = /(?:\bfrom|\bimport\(|\bimport|\brequire\()\s*['"]([^'"]+)['"]/g

/** Whether an import stays in the folder of the client. */
const isInside = ({ name, target }: { name: string; target: string }) =>
  target.startsWith('.') && !relative(DIST, join(DIST, dirname(name), target)).startsWith('..')
