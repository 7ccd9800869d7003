// Loads TypeScript as JavaScript, because Jazzer.js instruments only that. Types become blanks, so
// lines and columns stay.
import { readFileSync } from 'node:fs'
import { register, stripTypeScriptTypes } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) register(import.meta.url)

export async function load(url, context, nextLoad) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return await nextLoad(url, context)
  const source = stripTypeScriptTypes(readFileSync(fileURLToPath(url), 'utf8'))
  return { format: 'module', shortCircuit: true, source }
}
