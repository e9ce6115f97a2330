/** The API level of this server: clients parse it as strict semver and switch features by it. */
export const apiVersion = '1.13.0'

/** The name and the version of this server, as package.json has it. */
export const product = { product: 'strongroom', product_version: '0.1.0' }
