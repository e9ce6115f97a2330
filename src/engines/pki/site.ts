/** The name of a job that every site does for itself. @param site from the configuration, without blanks */
export const jobOfSite = (name: string, site: string): string => `${name} of site ${site}`
