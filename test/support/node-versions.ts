import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { ROOT } from './markdown.ts'

/** A Node that the engine and the client support. */
export type NodeVersion = { readonly path: string; readonly version: string }

const installed = (path: string) => join(ROOT, 'test/node-versions/node_modules', path)

/** `EV_NODES` lists others, as PATH does. */
const PATHS =
  process.env.EV_NODES?.split(delimiter) ??
  ['node20', 'node22'].map(name => installed(`${name}/bin/node`))

/** The Node versions of `npm ci --prefix test/node-versions`, or of `EV_NODES`. */
export const NODE_VERSIONS: readonly NodeVersion[] = PATHS.filter(path => existsSync(path)).map(
  path => ({ path, version: spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout.trim() }),
)

/** Other runtimes of the client, of `npm ci --prefix test/node-versions`. */
export const OTHER_RUNTIMES = [
  { name: 'Bun', path: installed('bun/bin/bun'), evaluate: ['--eval'] },
  { name: 'Deno', path: installed('deno/deno'), evaluate: ['eval'] },
].filter(({ path }) => existsSync(path))

if (NODE_VERSIONS.length < PATHS.length) {
  const message = 'Node 20 or 22 is missing. On Linux (x64) run: npm ci --prefix test/node-versions'
  const isInstallable = process.platform === 'linux' && process.arch === 'x64'
  if (process.env.EV_REAL_SERVERS === 'required' && isInstallable) throw new Error(message)
  console.warn(`Tests on other versions of Node are skipped. ${message}`)
}
