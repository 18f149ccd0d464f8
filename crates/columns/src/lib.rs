//! Results as columns on disk: Parquet, compressed with zstd.
//!
//! [`to_parquet`] makes the bytes of one file. [`partitioned`] cuts a table into files whose folders are named after values, as
//! Hive does it: `flow.video.controller=rcs/part-0.parquet`. DuckDB, polars, pandas, Spark read such a folder as one table, and leave out
//! what a condition on these values excludes.
//!
//! ```
//! use fairpace_columns::{partitioned, to_parquet};
//! use fairpace_lab::{Column, Table};
//!
//! let controller = Column::Text(["rcs", "rap"].into_iter().collect());
//! let loss = Column::Number(vec![Some(0.01), None]);
//! let table = Table::of(vec![("controller".into(), controller), ("loss_ratio".into(), loss)]);
//! assert!(to_parquet(&table)?.starts_with(b"PAR1"));
//! let files = partitioned(&table, &["controller"]);
//! assert_eq!(files[0].0, "controller=rcs/part-0.parquet");
//! assert_eq!(files[0].1.columns().len(), 1);
//! # Ok::<(), fairpace_columns::ColumnsError>(())
//! ```

#![forbid(unsafe_code)]

use fairpace_lab::{Column, Table};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::sync::Arc;

/// Why a table is no Parquet file.
#[derive(Debug, thiserror::Error)]
#[error("the table cannot be written as Parquet: {0}")]
pub struct ColumnsError(#[from] ParquetError);

/// The level of zstd: its own default.
const LEVEL: i32 = 3;
/// Rows of a row group.
const ROWS: usize = 1 << 20;

/// The table as a Parquet file: text as UTF-8, whole numbers as `INT64`, numbers as `DOUBLE`; each may be missing. The same table gives
/// the same bytes.
///
/// # Errors
/// A column has a name that another has.
pub fn to_parquet(table: &Table) -> Result<Vec<u8>, ColumnsError> {
    let fields = table.columns().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
    let compression = Compression::ZSTD(ZstdLevel::try_new(LEVEL)?);
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_created_by(concat!("fairpace ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let rows: Vec<usize> = (0..table.len()).collect();
    for rows in rows.chunks(ROWS) {
        let mut group = writer.next_row_group()?;
        for (_, column) in table.columns() {
            write(&mut group, &column.select(rows))?;
        }
        group.close()?;
    }
    Ok(writer.into_inner()?)
}

fn field((name, column): (&str, &Column)) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column {
        Column::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        Column::Whole(_) => (PhysicalType::INT64, None),
        Column::Number(_) => (PhysicalType::DOUBLE, None),
    };
    let builder = Type::primitive_type_builder(name, physical);
    builder.with_logical_type(logical).with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
}

fn write(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, values: &Column) -> Result<(), ParquetError> {
    /// The values that are there, and a one or a zero for each row.
    fn known<T: Copy>(all: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
        (all.iter().copied().flatten().collect(), all.iter().map(|x| i16::from(x.is_some())).collect())
    }
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns than the table".to_owned()));
    };
    match values {
        Column::Text(words) => {
            let (places, is_known) = known(words.rows());
            let text = |place: u32| ByteArray::from(words.words()[place as usize].as_str());
            let bytes: Vec<ByteArray> = places.into_iter().map(text).collect();
            column.typed::<ByteArrayType>().write_batch(&bytes, Some(&is_known), None)?;
        }
        Column::Whole(numbers) => {
            let (known, is_known) = known(numbers);
            // Seeds and counts are below 2^53.
            let known: Vec<i64> = known.iter().map(|n| i64::try_from(*n).unwrap_or(i64::MAX)).collect();
            column.typed::<Int64Type>().write_batch(&known, Some(&is_known), None)?;
        }
        Column::Number(numbers) => {
            let (known, is_known) = known(numbers);
            column.typed::<DoubleType>().write_batch(&known, Some(&is_known), None)?;
        }
    }
    column.close()
}

/// The table in parts, each with the name of its file: a folder for each value of these columns, which the parts no longer have (a
/// column that the table has not makes no folder). Rows
/// keep their order; parts are in order of their first rows. A table without rows is one part without folders.
pub fn partitioned(table: &Table, by: &[&str]) -> Vec<(String, Table)> {
    let keys: Vec<(&str, &Column)> = by.iter().filter_map(|name| Some((*name, table.column(name)?))).collect();
    // Hive's word for a value that is missing.
    let cell = |key: &Column, row| key.cell(row).unwrap_or_else(|| "__HIVE_DEFAULT_PARTITION__".to_owned());
    let folder =
        |row: usize| -> String { keys.iter().map(|(name, key)| folder_name(name, &cell(key, row)) + "/").collect() };
    let mut parts: Vec<(String, Vec<usize>)> = Vec::new();
    for row in 0..table.len() {
        let folder = folder(row);
        match parts.iter_mut().rev().find(|(name, _)| *name == folder) {
            Some((_, rows)) => rows.push(row),
            None => parts.push((folder, vec![row])),
        }
    }
    if parts.is_empty() {
        parts.push((String::new(), Vec::new()));
    }
    let part =
        |(folder, rows): (String, Vec<usize>)| (format!("{folder}part-0.parquet"), table.select(&rows).without(by));
    parts.into_iter().map(part).collect()
}

/// The folder of the rows with that value in that column. File systems take names of up to 255 bytes.
pub fn folder_name(column: &str, value: &str) -> String {
    format!("{}={}", escaped(column), escaped(value))
}

/// Percent-encoded where a name of a file might not have it [RFC 3986 §2.1].
fn escaped(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let one = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::RowAccessor as _;

    fn table() -> Table {
        Table::of(vec![
            ("flow.video.controller".into(), Column::Text(["rcs", "rap:a=1", "rcs"].into_iter().collect())),
            ("seed".into(), Column::Whole(vec![Some(1), Some(2), Some(9_007_199_254_740_991)])),
            ("loss_ratio".into(), Column::Number(vec![Some(0.1 + 0.2), None, Some(-0.0)])),
        ])
    }

    #[test]
    fn a_file_has_every_value_to_the_bit_and_is_compressed() {
        let bytes = to_parquet(&table()).unwrap();
        assert_eq!(bytes, to_parquet(&table()).unwrap());
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let codec = reader.metadata().row_group(0).column(0).compression();
        assert!(matches!(codec, Compression::ZSTD(_)), "{codec:?}");
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[1].get_string(0).unwrap(), "rap:a=1");
        assert_eq!(rows[2].get_long(1).unwrap(), 9_007_199_254_740_991);
        assert_eq!(rows[0].get_double(2).unwrap().to_bits(), (0.1_f64 + 0.2).to_bits());
        assert!(rows[1].get_double(2).is_err(), "missing");
        assert_eq!(rows[2].get_double(2).unwrap().to_bits(), (-0.0_f64).to_bits());
    }

    #[test]
    fn parts_are_named_after_values_and_have_all_rows_in_order() {
        let parts = partitioned(&table(), &["flow.video.controller"]);
        let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
        let controller = "flow.video.controller";
        assert_eq!(
            names,
            [format!("{controller}=rcs/part-0.parquet"), format!("{controller}=rap%3Aa%3D1/part-0.parquet")]
        );
        assert_eq!(parts[0].1.column("seed"), Some(&Column::Whole(vec![Some(1), Some(9_007_199_254_740_991)])));
        assert!(parts.iter().all(|(_, table)| table.column(controller).is_none()));
        assert_eq!(partitioned(&table(), &[])[0].0, "part-0.parquet");
        let nothing = Table::of(vec![("a".into(), Column::Whole(Vec::new()))]);
        assert_eq!(partitioned(&nothing, &["a"]).len(), 1);
        assert!(to_parquet(&nothing).is_ok());
    }
}
