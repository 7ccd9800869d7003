// Writes the software bill of materials of ev in the format CycloneDX.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LICENSE_SEPARATOR } from './bundle.mjs'

/** Packages of which files are served to browsers; package.json has them for the build only. */
const VENDORED = ['htmx.org', 'minisearch', 'uplot']

/**
 * Writes to `file` all packages that ev consists of, with the versions, licenses and hashes of
 * package-lock.json: those that npm installs with it, those that the build has put into its own
 * files (property `ev:bundled`), and the Node of the Debian package and the container (optional).
 */
export function writeSbom(root, file) {
  const { version, license } = readJson(join(root, 'package.json'))
  const bundled = [...bundledPackages(root), ...VENDORED]
  const components = new Map()
  for (const entry of lockedPackages(root)) {
    const ref = `${entry.name}@${entry.version}`
    const isBundled = bundled.includes(ref) || bundled.includes(entry.name)
    if (entry.isInstalled || isBundled) components.set(ref, toComponent(entry, ref, isBundled))
  }
  for (const name of bundled) {
    const isListed = [...components].some(([ref, one]) => ref === name || one.name === name)
    if (!isListed) throw new Error(`package-lock.json has no ${name}, which the build contains.`)
  }
  const bom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      component: {
        'bom-ref': `evmail@${version}`,
        type: 'application',
        name: 'evmail',
        version,
        purl: `pkg:npm/evmail@${version}`,
        licenses: [{ license: { id: license } }],
      },
    },
    components: [...components.keys()].sort().map(ref => components.get(ref)),
  }
  writeFileSync(file, `${JSON.stringify(bom, null, 2)}\n`)
}

/** The packages of package-lock.json, with their names and whether ev needs them to run. */
function lockedPackages(root) {
  const { packages } = readJson(join(root, 'package-lock.json'))
  return Object.entries(packages)
    .filter(([path, { link }]) => path.includes('node_modules/') && !link)
    .map(([path, { version, license, integrity, dev, devOptional, optional }]) => ({
      name: path.replace(/^.*node_modules\//, ''),
      version,
      license,
      integrity,
      isOptional: optional === true,
      isInstalled: !dev && !devOptional,
    }))
}

/** The packages in the build as `name@version`, which its file of licenses lists. */
function bundledPackages(root) {
  const text = readFileSync(join(root, 'dist/bundled/LICENSES.txt'), 'utf8')
  return text.split(LICENSE_SEPARATOR).map(license => license.split('\n', 1)[0].replace(' ', '@'))
}

function toComponent({ name, version, license, integrity, isOptional }, ref, isBundled) {
  const [algorithm, hash] = integrity.split('-')
  return {
    'bom-ref': ref,
    type: 'library',
    name,
    version,
    scope: isOptional ? 'optional' : 'required',
    hashes: [
      {
        alg: algorithm.toUpperCase().replace('SHA', 'SHA-'),
        content: Buffer.from(hash, 'base64').toString('hex'),
      },
    ],
    licenses: license === undefined ? [] : [toLicense(license)],
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    properties: isBundled ? [{ name: 'ev:bundled', value: 'true' }] : [],
  }
}

/** An SPDX identifier, or an expression such as `MIT OR Apache-2.0`. */
function toLicense(text) {
  return /^[\w.+-]+$/.test(text) ? { license: { id: text } } : { expression: text }
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}
