// Writes the npm packages to packages/, or to the folder that is the argument, from one build: the
// engine, the client, and the product that depends on both. Each contains only its own files and
// names only its own dependencies.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundlePackages, bundleTypes } from './pack/bundle.mjs'
import { closureOf, importsOf, nameOf, packagesOf, replaceSpecifiers } from './pack/modules.mjs'

const PRODUCT = 'evmail'
const ENGINE = 'evmail-engine'
const CLIENT = 'evmail-client'

/**
 * Packages that the product contains instead of depending on them: it uses a small part of each, and
 * with what they depend on they are more packages than all others.
 */
const BUNDLED = [
  ...['@hono/node-server', '@hono/zod-openapi', 'hono', 'kysely', 'csv-parse', 'csv-stringify'],
  ...['ora', 'pg-boss', 'pino-pretty', 'prom-client', 'zod'],
]

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const dist = join(root, 'dist')
const packages = resolve(process.argv[2] ?? join(root, 'packages'))
const manifest = readJson(join(root, 'package.json'))

run('tools/build.mjs', '--if-changed')
rmSync(packages, { recursive: true, force: true })
const engineFiles = closureOf(join(dist, 'index.js'))
const clientFiles = closureOf(join(dist, 'client/client.js'))
await packEngine()
await packClient()
await packProduct()

/**
 * Writes the modules of an entry, one file each, because the product imports some of them too.
 * Only the types of the entry are included.
 */
async function packModules(name, entry, files) {
  const folder = startPackage(name)
  for (const file of files) copyModule(file, join(folder, 'dist', relative(dist, file)))
  const types = `${entry}.d.ts`
  await bundleTypes(join(dist, types), join(folder, 'dist', types))
  return folder
}

async function packEngine() {
  const folder = await packModules(ENGINE, 'index', engineFiles)
  const lists = 'engine/address/lists'
  cpSync(join(dist, lists), join(folder, 'dist', lists), { recursive: true })
  finishPackage(folder)
}

async function packClient() {
  finishPackage(await packModules(CLIENT, 'client/client', clientFiles))
}

/** All other modules. Modules of the engine and the client are imported from those packages. */
async function packProduct() {
  const folder = startPackage(PRODUCT)
  cpSync(join(root, 'bin'), join(folder, 'bin'), { recursive: true })
  const names = readdirSync(dist, { recursive: true }).filter(name => /\.\w+$/.test(name))
  const modules = []
  for (const name of names) {
    const file = join(dist, name)
    if (!name.endsWith('.js') || isServed(name)) {
      if (isData(name)) cpSync(file, join(folder, 'dist', name))
    } else if (!engineFiles.has(file) && !clientFiles.has(file)) {
      modules.push(file)
    }
  }
  const bundled = await bundleDependencies(folder, modules)
  for (const file of modules) {
    copyModule(file, join(folder, 'dist', relative(dist, file)), ({ specifier }) =>
      specifier.startsWith('.')
        ? otherPackage(join(dirname(file), specifier))
        : ((bundled.get(specifier) &&
            relativePath(file, join(dist, 'vendor', bundled.get(specifier)))) ??
          null),
    )
  }
  for (const [name, from] of [
    ['index', ENGINE],
    ['client/client', CLIENT],
  ]) {
    for (const ending of ['js', 'd.ts']) {
      const file = join(folder, 'dist', `${name}.${ending}`)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, `export * from '${from}'\n`)
    }
  }
  finishPackage(folder, { [ENGINE]: manifest.version, [CLIENT]: manifest.version })
}

/** Writes the bundled packages to dist/vendor. Returns their files by specifier. */
function bundleDependencies(folder, modules) {
  const names = new Map()
  for (const file of modules) {
    for (const { specifier, statement } of importsOf(readFileSync(file, 'utf8'))) {
      if (!BUNDLED.includes(nameOf(specifier))) continue
      const imported = names.get(specifier) ?? new Set()
      for (const name of importedNames(statement)) imported.add(name)
      names.set(specifier, imported)
    }
  }
  const external = Object.keys(manifest.dependencies).filter(name => !BUNDLED.includes(name))
  return bundlePackages(root, join(folder, 'dist/vendor'), names, external)
}

/** The names in a statement such as `import pretty, { prettyFactory as x } from 'pino-pretty'`. */
function importedNames(statement) {
  const [, main, list] = /^import\s+(\w+)?,?\s*(?:\{([^}]*)\})?\s*from/.exec(statement) ?? []
  if (main === undefined && list === undefined) throw new Error(`Not supported: ${statement}`)
  const named = (list ?? '').split(',').map(name => name.trim().split(' as ')[0])
  return [...(main === undefined ? [] : ['default']), ...named.filter(name => name !== '')]
}

/** Returns the specifier for a module of another package; null for one of the product. */
function otherPackage(file) {
  const name = engineFiles.has(file) ? ENGINE : clientFiles.has(file) ? CLIENT : null
  return name && `${name}/internal/${relative(dist, file)}`
}

/** Whether a file is served to browsers as it is. */
function isServed(name) {
  return /^(vendor|dashboard\/browser)\//.test(name)
}

/** Whether a file that is not a module is needed at run time. */
function isData(name) {
  return isServed(name) || name === 'simulator/example.json'
}

function copyModule(file, target, replace = () => null) {
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, replaceSpecifiers(readFileSync(file, 'utf8'), replace))
  cpSync(`${file}.map`, `${target}.map`)
}

function startPackage(name) {
  const folder = join(packages, name)
  mkdirSync(folder, { recursive: true })
  cpSync(join(root, 'tools/packages', name, 'README.md'), join(folder, 'README.md'))
  for (const file of ['LICENSE', 'CHANGELOG.md']) cpSync(join(root, file), join(folder, file))
  return folder
}

/** Writes package.json, with the packages that the modules load as dependencies. */
function finishPackage(folder, others = {}) {
  const own = readJson(join(root, 'tools/packages', relative(packages, folder), 'package.json'))
  const loaded = readdirSync(join(folder, 'dist'), { recursive: true })
    .filter(
      name =>
        name.endsWith('.js') && !/^dashboard\/browser\/|^vendor\/(htmx|uplot|swagger)/.test(name),
    )
    .flatMap(name => packagesOf(readFileSync(join(folder, 'dist', name), 'utf8')))
  const optional = Object.keys(own.peerDependencies ?? {})
  const dependencies = Object.fromEntries(
    [...new Set(loaded)]
      .filter(name => !optional.includes(name))
      .sort()
      .map(name => [name, others[name] ?? versionOf(name)]),
  )
  const { version, license, author } = manifest
  const [first, ...rest] = Object.entries(own)
  const all = Object.fromEntries([
    first,
    ['version', version],
    ...rest,
    ['license', license],
    ['author', author],
    ...repository(),
  ])
  writeFileSync(
    join(folder, 'package.json'),
    `${JSON.stringify({ ...all, dependencies }, null, 2)}\n`,
  )
}

function versionOf(name) {
  const version = manifest.dependencies[name]
  if (version === undefined) throw new Error(`package.json has no dependency ${name}.`)
  return version
}

/** The repository is where this copy comes from: npm compares it with the provenance. */
function repository() {
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env
  const url = GITHUB_REPOSITORY ? `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}` : remoteUrl()
  return url === '' ? [] : [['repository', { type: 'git', url }]]
}

function remoteUrl() {
  const { stdout } = spawnSync('git', ['remote', 'get-url', 'origin'], {
    cwd: root,
    encoding: 'utf8',
  })
  return (stdout ?? '').trim()
}

function relativePath(from, to) {
  const path = relative(dirname(from), to)
  return path.startsWith('.') ? path : `./${path}`
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

function run(...args) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
