import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, inject, test } from 'vitest'

const DIST = join(import.meta.dirname, '../../dist/client')
const built = () =>
  readdirSync(DIST, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.(js|d\.ts)$/.test(name))
    .map(name => ({ name, text: readFileSync(join(DIST, name), 'utf8') }))

test('the client imports only its own files', () => {
  expect(inject('buildFault')).toBe('')
  const imported = built().flatMap(({ name, text }) =>
    [...text.matchAll(IMPORT)].map(([, target = '']) => ({ name, target })),
  )
  expect(imported.length).toBeGreaterThan(20)
  expect(imported.filter(one => !isInside(one))).toEqual([])
})

test('the client uses no Node-only API', () => {
  const own = built().filter(({ text }) =>
    /\b(process|Buffer|__dirname|setImmediate|require|NodeJS)\b\s*[.(]|AbortSignal\.any|types="node"/.test(
      text.replace(/\/\*[\s\S]*?\*\/|\/\/.*|`[^`]*`|'[^'\n]*'/g, ''),
    ),
  )
  expect(own.map(({ name }) => name)).toEqual([])
})

// A quote before "from" belongs to a type such as `'from' | 'to'`.
const IMPORT = /(?<!['"])(?:\bfrom|\bimport\(|\bimport|\brequire\()\s*['"]([^'"]+)['"]/g

/** Whether an import is within the folder of the client. */
const isInside = ({ name, target }: { name: string; target: string }) =>
  target.startsWith('.') && !relative(DIST, join(DIST, dirname(name), target)).startsWith('..')
