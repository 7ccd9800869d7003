import { join } from 'node:path'

/**
 * Returns the path of a library file that pages load. The build copies these files, because most of
 * the packages that contain them is not used.
 */
export const vendorFile = (name: string): string =>
  join(import.meta.dirname, '../../dist/vendor', name)
