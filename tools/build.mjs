// Builds dist/ from src/: writes the types of the client, compiles, copies the data files that the code reads at run
// time, and only then takes the place of the earlier one, so that an ev that runs or starts meanwhile finds everything.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

await import('./client-types.mjs')

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const tsc = join(
  dirname(createRequire(import.meta.url).resolve('typescript/package.json')),
  'bin/tsc',
)
const [dist, made, old] = ['dist', `.dist-${process.pid}`, `.dist-${process.pid}.old`].map(name =>
  join(root, name),
)
process.on('exit', () => {
  for (const folder of [made, old]) rmSync(folder, { recursive: true, force: true })
})
const compiled = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', made], {
  cwd: root,
  stdio: 'inherit',
})
if (compiled.status !== 0) process.exit(compiled.status ?? 1)
cpSync(join(root, 'src/simulator/example.json'), join(made, 'simulator/example.json'))
cpSync(join(root, 'src/dashboard/browser'), join(made, 'dashboard/browser'), {
  recursive: true,
  filter: name => !name.endsWith('.json'),
})
const lists = join(root, 'src/engine/address/lists')
if (existsSync(lists)) cpSync(lists, join(made, 'engine/address/lists'), { recursive: true })
if (existsSync(dist)) renameSync(dist, old)
renameSync(made, dist)
